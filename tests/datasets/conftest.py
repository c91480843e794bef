"""A server on this machine, folders of its own, and small sets to serve."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Server:
    """Serves `pages`: path to bytes, or to a function that answers the request."""

    def __init__(self):
        self.pages = {}
        self.asked = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                page = outer.pages.get(self.path.lstrip("/"))
                if page is None:
                    self.send_error(404)
                elif callable(page):
                    page(self)
                else:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(page)))
                    self.end_headers()
                    self.wfile.write(page)

            def log_message(self, *arguments):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def url(self, path):
        return f"http://127.0.0.1:{self._server.server_port}/{path}"

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no other folder of data."""
    monkeypatch.delenv("LOKL_DATA", raising=False)
    monkeypatch.setenv("LOKL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
