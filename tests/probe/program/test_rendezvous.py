"""What ranks need to meet: the machine's own name, and the port of MASTER_PORT."""
import errno
import os
import socket
import threading
import unittest
import unittest.mock

from harness import module


class Rendezvous(unittest.TestCase):
    def setUp(self):
        self.rendezvous = module("rendezvous")

    def body(self, name="localhost", **variables):
        with unittest.mock.patch.dict(os.environ, variables), \
                unittest.mock.patch.object(self.rendezvous.socket, "gethostname", lambda: name):
            return self.rendezvous.rendezvous_body()

    def test_a_name_needs_an_address_of_this_machine(self):
        self.assertIn("127.0.0.1", self.body()["hostname_addresses"])
        self.assertEqual(self.body("192.0.2.7")["unread"], {"hostname_addresses": "192.0.2.7: not an address of this machine"})
        self.assertTrue(self.body("no-such-host.invalid")["unread"]["hostname_addresses"])

    def test_a_resolver_without_an_answer_ends_nothing(self):
        answers = threading.Event()
        self.addCleanup(answers.set)
        with unittest.mock.patch.object(self.rendezvous.socket, "getaddrinfo", lambda *_: answers.wait() and []), \
                unittest.mock.patch.object(self.rendezvous, "RESOLVER_SECONDS", 0):
            self.assertEqual(self.body()["unread"], {"hostname_addresses": "the resolver did not answer within 0 s"})

    def test_the_port_of_this_machine_is_taken_while_something_listens(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
            self.assertTrue(self.body(MASTER_PORT=port, MASTER_ADDR="127.0.0.1")["port_taken"])
            self.assertFalse(self.body(MASTER_PORT=port, MASTER_ADDR="192.0.2.7")["port_taken"])
            self.assertNotIn("port_taken", self.body(MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="True"))
        body = self.body(MASTER_PORT=port)
        self.assertEqual((body["port"], body["port_taken"]), (int(port), False))

    def test_a_port_that_cannot_be_bound_is_no_answer(self):
        refused = unittest.mock.patch.object(self.rendezvous, "binding_error", lambda _, port: errno.EACCES if port else None)
        with refused:
            self.assertEqual(self.body(MASTER_PORT="80")["unread"], {"port_taken": "bind: Permission denied"})
        self.assertIn("port", self.body(MASTER_PORT="http")["unread"])
        self.assertNotIn("port", self.body())


if __name__ == "__main__":
    unittest.main()
