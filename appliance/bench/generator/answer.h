/* The header of one answer, JSON or ROCKETMQ: what the load needs to know of it. */

#ifndef ANSWER_H
#define ANSWER_H

#include <stddef.h>
#include <stdint.h>

#define REMARK_BYTES 80

struct answer {
    int64_t code;
    int64_t opaque;
    int64_t flag;        /* bit 0: an answer and no request */
    int64_t next_offset; /* of a pull; -1 without one */
    const char *remark;  /* in the header; NULL without one */
    size_t remark_bytes;
};

/* Reads a header of `bytes` bytes; word is the frame's second word, whose first byte tells the encoding.
   Returns 0 when it is no header of either encoding. */
int answer_read(struct answer *answer, uint32_t word, const char *header, size_t bytes);

uint32_t read_word(const char *at);

#endif
