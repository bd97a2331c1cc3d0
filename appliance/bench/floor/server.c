/* The floor: one thread that waits, reads a request, and writes a ready answer of the size that a broker's has. It stores
 * nothing. What it costs a message is what the kernel takes for waking up, a read and a write; no broker can cost less.
 * Prints its port. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 256
#define RECEIVE_BYTES (1 << 18)
#define REST_BYTES_MAX (1 << 17) /* of a frame that is not whole yet */
#define ANSWER_BYTES_MAX 512
#define ANSWERS_BYTES (1 << 16) /* of a read: with more the server stops reading frames, and goes on afterwards */
#define PULL_MESSAGE 11
#define PULLED 32 /* messages of a pull */
#define RECORD_BYTES 1150

struct connection {
    int descriptor;
    size_t rest_bytes;
    char rest[REST_BYTES_MAX];
};

static char received[REST_BYTES_MAX + RECEIVE_BYTES];
static char answers[ANSWERS_BYTES];
static char records[PULLED * RECORD_BYTES];

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static uint32_t word_at(const char *at) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return ntohl(word);
}

/* The number behind a name of a JSON header, 0 without one. */
static long number_of(const char *header, size_t bytes, const char *name) {
    const char *at = memmem(header, bytes, name, strlen(name));
    return at == NULL ? 0 : strtol(at + strlen(name), NULL, 10); /* a header is followed by its braces at least */
}

/* Writes the answer's head; returns its size. body_bytes: of what follows it. */
static size_t put_head(char *at, long opaque, long next_offset, size_t body_bytes) {
    size_t bytes = (size_t)snprintf(
        at + 8, ANSWER_BYTES_MAX - 8,
        "{\"code\":0,\"extFields\":{\"MSG_REGION\":\"DefaultRegion\",\"TRACE_ON\":\"true\",\"msgId\":"
        "\"7F00000100002A9F0000000000000000\",\"nextBeginOffset\":\"%ld\",\"offset\":\"0\",\"queueId\":\"0\","
        "\"queueOffset\":\"0\"},\"flag\":1,\"language\":\"JAVA\",\"opaque\":%ld,"
        "\"serializeTypeCurrentRPC\":\"JSON\",\"version\":401}",
        next_offset, opaque);
    uint32_t word = htonl((uint32_t)(4 + bytes + body_bytes));
    memcpy(at, &word, sizeof word);
    word = htonl((uint32_t)bytes);
    memcpy(at + 4, &word, sizeof word);
    return 8 + bytes;
}

static void write_parts(int descriptor, struct iovec *parts, int count) {
    while (count > 0) {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
        ssize_t sent = sendmsg(descriptor, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return; /* the peer is gone, which the next read shows */
        while (count > 0 && sent >= (ssize_t)parts->iov_len) {
            sent -= (ssize_t)parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0 && sent > 0) {
            parts->iov_base = (char *)parts->iov_base + sent;
            parts->iov_len -= (size_t)sent;
        }
    }
}

/* Answers one request; returns the bytes of `answers` that are used now. */
static size_t answer(int descriptor, const char *header, size_t bytes, size_t used) {
    long opaque = number_of(header, bytes, "\"opaque\":");
    if (number_of(header, bytes, "\"code\":") != PULL_MESSAGE)
        return used + put_head(answers + used, opaque, 0, 0);
    long next_offset = number_of(header, bytes, "\"queueOffset\":\"") + PULLED;
    used += put_head(answers + used, opaque, next_offset, sizeof records);
    write_parts(descriptor, (struct iovec[]){{answers, used}, {records, sizeof records}}, 2);
    return 0;
}

static void close_it(struct connection *connection) {
    close(connection->descriptor);
    free(connection);
}

static void serve(struct connection *connection) {
    memcpy(received, connection->rest, connection->rest_bytes);
    ssize_t got = recv(connection->descriptor, received + connection->rest_bytes, RECEIVE_BYTES, MSG_DONTWAIT);
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            close_it(connection);
        return;
    }
    const char *at = received, *end = received + connection->rest_bytes + got;
    size_t used = 0;
    while (end - at >= 8 && (size_t)(end - at) >= 4 + (size_t)word_at(at)) {
        size_t header_bytes = word_at(at + 4) & 0xffffff;
        if (header_bytes + 4 > word_at(at)) {
            close_it(connection);
            return;
        }
        used = answer(connection->descriptor, at + 8, header_bytes, used);
        if (used > ANSWERS_BYTES - ANSWER_BYTES_MAX) {
            write_parts(connection->descriptor, (struct iovec[]){{answers, used}}, 1);
            used = 0;
        }
        at += 4 + word_at(at);
    }
    if (used > 0)
        write_parts(connection->descriptor, (struct iovec[]){{answers, used}}, 1);
    connection->rest_bytes = (size_t)(end - at);
    if (connection->rest_bytes > REST_BYTES_MAX) {
        close_it(connection);
        return;
    }
    memcpy(connection->rest, at, connection->rest_bytes);
}

static void welcome(int poller, int listening) {
    int one = 1, descriptor = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    struct connection *connection = malloc(sizeof *connection);
    if (descriptor < 0 || connection == NULL)
        die("accept");
    connection->descriptor = descriptor;
    connection->rest_bytes = 0;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event) != 0)
        die("epoll_ctl");
}

static int listener(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int one = 1, listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (listening < 0 || bind(listening, (struct sockaddr *)&address, bytes) != 0 || listen(listening, 1024) != 0 ||
        getsockname(listening, (struct sockaddr *)&address, &bytes) != 0)
        die("listen");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listening;
}

int main(void) {
    struct epoll_event events[EVENTS_AT_ONCE];
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    int listening = listener(), poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listening, &event) != 0)
        die("epoll");
    while (1) {
        int count = epoll_wait(poller, events, EVENTS_AT_ONCE, -1);
        for (int index = 0; index < count; index++) {
            if (events[index].data.ptr == NULL)
                welcome(poller, listening);
            else
                serve(events[index].data.ptr);
        }
    }
}
