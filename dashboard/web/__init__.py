"""The web server in front of Django: limits on connections and bytes before the application sees a request.

Daphne and Twisted implement HTTP and websockets; this package limits how many connections there may be, and how much
unauthenticated clients may send, so that they can't use up memory, disk or descriptors.

    client_connection   one accepted connection; `connections` counts them and selects one to close
    channel             HTTP on a connection: limits of head and body, deadlines, refusals
    request             Daphne's request, with its body in memory
    live                Daphne's websocket, without buffering before it is open
    certificate         the certificate of the port; with one, plain requests for pages are redirected to https
    proxies             the address, scheme and host of the browser behind a trusted proxy
    credentials         whether a head has a valid session or token
    server              puts them together
"""
