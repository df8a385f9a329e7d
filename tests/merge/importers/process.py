"""Daemons of engines: started with their own folders and sockets, and stopped by their process identifiers."""
import os, signal, subprocess, time


class Failed(Exception):
    """A daemon that does not start, or ends early."""


def start(command, log, answers, **environment):
    """Starts a daemon in its own session, and waits until `answers()` is true."""
    with open(log, "wb") as out:
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                                  env={**os.environ, **environment})
    for _ in range(300):
        if answers():
            return daemon
        if daemon.poll() is not None:
            break
        time.sleep(0.1)
    stop(daemon)
    with open(log, errors="replace") as text:
        raise Failed("%s does not answer; the end of its log:\n%s" % (command[0], "".join(text.readlines()[-5:])))


def stop(daemon):
    daemon.terminate()
    try:
        daemon.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()
