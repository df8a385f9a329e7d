"""A store as S3 offers it, and a registry, both on loopback, which fail, hang and refuse on purpose.

The store has what `object_store` asks of S3: PUT with If-None-Match, GET, HEAD, and ListObjectsV2. The registry serves a layout whose
images are named, read-only, with its catalog and tags.
"""

import hashlib
import http.server
import json
import random
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

# A burst of refusals: this many requests one after the other, once in so many requests.
BURST, BURST_EVERY = 5, 500
# Entries on a page of a list of S3.
PAGE = 1000


class Trouble:
    """Which requests fail: one in `fail` with 500, one in `hang` after `seconds` without an answer; bursts with `busy`. 0: none.

    Every answer takes `latency` seconds.
    """

    def __init__(self, busy, fail=0, hang=0, seconds=10.0, latency=0.0, seed=1):
        self.busy, self.fail, self.hang, self.seconds, self.latency = busy, fail, hang, seconds, latency
        self.chance, self.lock = random.Random(seed), threading.Lock()
        self.requests = self.failed = self.hung = self.refused = 0

    def next(self):
        """The status of a failure, or None. Hangs first, if this request does."""
        with self.lock:
            self.requests += 1
            refused = self.fail and self.requests % BURST_EVERY < BURST
            fails = not refused and self.fail and self.chance.randrange(self.fail) == 0
            hangs = self.hang and self.chance.randrange(self.hang) == 0
            self.refused += bool(refused)
            self.failed += bool(fails)
            self.hung += bool(hangs)
        time.sleep(self.latency + self.seconds * bool(hangs))
        return self.busy if refused else 500 if fails else None

    def half(self):
        with self.lock:
            return self.chance.random() < 0.5

    def __str__(self):
        return f'{self.requests} requests, {self.failed} failed, {self.hung} hung, {self.refused} refused'


class Server:
    """Serves until `close`."""

    def __init__(self, handler, trouble, **content):
        self.http = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
        self.http.daemon_threads = True
        self.http.trouble = self.trouble = trouble
        for name, value in content.items():
            setattr(self.http, name, value)
        self.place = f'127.0.0.1:{self.http.server_port}'
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    # An answer is written in two parts: without this, the second waits for the acknowledgement of the first.
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body=b'', **headers):
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace('_', '-'), value)
            if status in (429, 503):
                self.send_header('Retry-After', '1')
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            if self.command != 'HEAD':
                self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            # The client did not wait for an answer that hung, or was killed.
            self.close_connection = True


class Bucket(Handler):
    """The store. A write that failed has happened in half of all cases, as if the answer was lost."""

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        key = urllib.parse.unquote(self.path.partition('?')[0])
        trouble = self.server.trouble.next()
        if trouble and self.server.trouble.half():
            return self.answer(trouble)
        with self.server.lock:
            refused = self.headers.get('If-None-Match') == '*' and key in self.server.objects
            if not refused:
                self.server.objects[key] = (body, time.time())
        if trouble:
            return self.answer(trouble)
        return self.answer(412 if refused else 200, ETag=etag(body))

    def do_GET(self):
        path, _, query = self.path.partition('?')
        query = dict(urllib.parse.parse_qsl(query))
        trouble = self.server.trouble.next()
        if trouble:
            return self.answer(trouble)
        if 'list-type' in query:
            return self.list(path, query)
        with self.server.lock:
            found = self.server.objects.get(urllib.parse.unquote(path))
        if not found:
            return self.answer(404, b'<Error><Code>NoSuchKey</Code></Error>')
        return self.answer(200, found[0], ETag=etag(found[0]), Last_Modified=self.date_time_string(found[1]))

    do_HEAD = do_GET

    def list(self, bucket, query):
        prefix, delimiter, after = query.get('prefix', ''), query.get('delimiter'), query.get('continuation-token', '')
        root = urllib.parse.unquote(bucket).rstrip('/') + '/'
        with self.server.lock:
            found = sorted((key[len(root):], value) for key, value in self.server.objects.items() if key.startswith(root + prefix))
        contents, folders, token = [], [], None
        for key, (body, modified) in found:
            rest = key[len(prefix):]
            folder = prefix + rest.split(delimiter)[0] + delimiter if delimiter and delimiter in rest else None
            entry = folder or key
            if entry <= after or (folders and folders[-1] == folder):
                continue
            if len(contents) + len(folders) == PAGE:
                token = last
                break
            last = entry
            if folder:
                folders.append(folder)
                continue
            stamp = time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(modified))
            contents.append(f'<Contents><Key>{escape(key)}</Key><LastModified>{stamp}</LastModified><ETag>{escape(etag(body))}</ETag>'
                            f'<Size>{len(body)}</Size></Contents>')
        xml = ['<ListBucketResult>', f'<IsTruncated>{"true" if token else "false"}</IsTruncated>']
        xml += [f'<NextContinuationToken>{escape(token)}</NextContinuationToken>'] if token else []
        xml += contents + [f'<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>' for folder in folders]
        return self.answer(200, ''.join([*xml, '</ListBucketResult>']).encode())


class Registry(Handler):
    """A registry (OCI distribution-spec): manifests by tag and by digest, blobs with ranges, the catalog, and tags."""

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        trouble = self.server.trouble.next()
        if trouble:
            return self.answer(trouble)
        if path in ('/v2', '/v2/'):
            return self.answer(200, b'{}')
        if path == '/v2/_catalog':
            return self.answer(200, json.dumps({'repositories': sorted(self.server.tags)}).encode())
        for middle, answer in (('/tags/list', self.tags), ('/manifests/', self.manifest), ('/blobs/', self.blob)):
            name, found, rest = path.removeprefix('/v2/').partition(middle)
            if found and name in self.server.tags:
                return answer(name, rest)
        return self.answer(404, b'{"errors": [{"code": "NAME_UNKNOWN"}]}')

    do_HEAD = do_GET

    def tags(self, name, _):
        self.answer(200, json.dumps({'name': name, 'tags': sorted(self.server.tags[name])}).encode())

    def manifest(self, name, which):
        digest = self.server.tags[name].get(which, which)
        path = self.file(digest)
        if path is None:
            return self.answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}')
        body = path.read_bytes()
        return self.answer(200, body, Content_Type=json.loads(body)['mediaType'], Docker_Content_Digest=digest)

    def blob(self, _, digest):
        path = self.file(digest)
        if path is None:
            return self.answer(404, b'{"errors": [{"code": "BLOB_UNKNOWN"}]}')
        body, wanted = path.read_bytes(), self.headers.get('Range', '')
        if wanted.startswith('bytes=') and wanted[6:].partition('-')[0].isdigit():
            first, _, last = wanted[6:].partition('-')
            first, last = int(first), min(int(last) if last else len(body) - 1, len(body) - 1)
            if first > last:
                return self.answer(416, Content_Range=f'bytes */{len(body)}')
            return self.answer(206, body[first:last + 1], Content_Range=f'bytes {first}-{last}/{len(body)}')
        return self.answer(200, body, Content_Type='application/octet-stream')

    def file(self, digest):
        path = self.server.layout / 'blobs' / digest.replace(':', '/')
        return path if digest.startswith('sha256:') and path.is_file() else None


def etag(body):
    return '"' + hashlib.md5(body).hexdigest() + '"'


def bucket(**trouble):
    """A store without objects."""
    # S3 answers 503 (Slow Down), other stores 429.
    return Server(Bucket, Trouble(busy=503, **trouble), objects={}, lock=threading.Lock())


def registry(layout, **trouble):
    """A registry of a layout whose images have names `HOST/REPOSITORY:TAG`."""
    tags = {}
    for image in json.loads((layout / 'index.json').read_text())['manifests']:
        name, _, tag = image['annotations']['org.opencontainers.image.ref.name'].partition('/')[2].rpartition(':')
        tags.setdefault(name, {})[tag] = image['digest']
    return Server(Registry, Trouble(busy=429, **trouble), layout=layout, tags=tags)
