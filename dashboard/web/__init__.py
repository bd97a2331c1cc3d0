"""The web door: what happens to a connection and its bytes before the application sees a request.

Daphne and Twisted speak HTTP and websockets; this room says who may connect, how long and how much a stranger may
send, and refuses the rest before it costs memory, disk or descriptors.

    door          one accepted connection; `connections` counts them and says who has to go
    channel       HTTP on a connection: limits of head and body, deadlines, refusals
    request       a request as Daphne has it, with its body in memory
    live          a websocket as Daphne has it, with nothing taken before it is open
    certificate   what the port shows to browsers; with one, plain pages are sent to https
    proxies       a request as the browser sent it, where a trusted proxy stands between
    credentials   whether a head carries a session or a token that is good
    server        puts them together
"""
