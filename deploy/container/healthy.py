"""Whether the server of a settings file answers on this machine and can serve: `healthy.py FILE`, exit code 0 or 1.

Where the server speaks TLS, exactly its own certificate is trusted, whatever name is in it.
"""

import ssl
import sys
import urllib.request
from pathlib import Path

from cloudid_servers.settings.settings import read_file

server = read_file(Path(sys.argv[1])).server
host, port = server.address
context = None
if server.tls_certificate:
    context = ssl.create_default_context(cafile=server.tls_certificate)
    context.check_hostname = False
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
here = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
try:
    opener.open(f"{server.scheme}://{here}:{port}/v1/sys/health", timeout=5).close()
except OSError as error:
    sys.exit(f"error: {error}")
