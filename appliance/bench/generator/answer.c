/* Reads answers' headers. No more than this load needs, but strictly: what is not understood is refused. */

#include "answer.h"

#include <string.h>

#define NEXT_OFFSET "nextBeginOffset"
#define BINARY_HEAD_BYTES 21u /* code 2, language 1, version 2, opaque 4, flag 4, length of the remark 4; ext 4 */

struct text {
    const char *at;
    const char *end;
};

uint32_t read_word(const char *at) {
    const unsigned char *bytes = (const unsigned char *)at;
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t read_half(const char *at) {
    const unsigned char *bytes = (const unsigned char *)at;
    return (uint32_t)bytes[0] << 8 | bytes[1];
}

static int equals(const char *at, size_t bytes, const char *name) {
    return bytes == strlen(name) && memcmp(at, name, bytes) == 0;
}

static int integer(const char *at, size_t bytes, int64_t *value) {
    size_t first = bytes > 0 && at[0] == '-';
    if (bytes == first || bytes > 18)
        return 0;
    *value = 0;
    for (size_t index = first; index < bytes; index++) {
        if (at[index] < '0' || at[index] > '9')
            return 0;
        *value = *value * 10 + (at[index] - '0');
    }
    if (first)
        *value = -*value;
    return 1;
}

/* -- JSON, as both brokers write it: no space between the tokens ------------------------------------------------- */

/* From the opening quote to behind the closing one; the contents, escapes as they are, are [*begin, *begin + *bytes). */
static int string(struct text *text, const char **begin, size_t *bytes) {
    if (text->at == text->end || *text->at != '"')
        return 0;
    const char *at = *begin = text->at + 1;
    while (at < text->end && *at != '"')
        at += *at == '\\' ? 2 : 1;
    if (at >= text->end)
        return 0;
    *bytes = (size_t)(at - *begin);
    text->at = at + 1;
    return 1;
}

/* A number, a word or a string: [*begin, *begin + *bytes). */
static int scalar(struct text *text, const char **begin, size_t *bytes) {
    if (text->at < text->end && *text->at == '"')
        return string(text, begin, bytes);
    *begin = text->at;
    while (text->at < text->end && *text->at != ',' && *text->at != '}')
        text->at++;
    *bytes = (size_t)(text->at - *begin);
    return *bytes > 0;
}

static int take(struct text *text, char wanted) {
    if (text->at == text->end || *text->at != wanted)
        return 0;
    text->at++;
    return 1;
}

static int ext_fields(struct text *text, struct answer *answer) {
    if (!take(text, '{'))
        return 0;
    if (take(text, '}'))
        return 1;
    do {
        const char *name, *value;
        size_t name_bytes, value_bytes;
        if (!string(text, &name, &name_bytes) || !take(text, ':') || !scalar(text, &value, &value_bytes))
            return 0;
        if (equals(name, name_bytes, NEXT_OFFSET) && !integer(value, value_bytes, &answer->next_offset))
            return 0;
    } while (take(text, ','));
    return take(text, '}');
}

static int json_field(struct text *text, struct answer *answer, unsigned *seen) {
    const char *name, *value;
    size_t name_bytes, value_bytes;
    if (!string(text, &name, &name_bytes) || !take(text, ':'))
        return 0;
    if (equals(name, name_bytes, "extFields"))
        return ext_fields(text, answer);
    if (!scalar(text, &value, &value_bytes))
        return 0;
    if (equals(name, name_bytes, "code"))
        return *seen |= 1, integer(value, value_bytes, &answer->code);
    if (equals(name, name_bytes, "opaque"))
        return *seen |= 2, integer(value, value_bytes, &answer->opaque);
    if (equals(name, name_bytes, "flag"))
        return *seen |= 4, integer(value, value_bytes, &answer->flag);
    if (equals(name, name_bytes, "remark")) {
        answer->remark = value;
        answer->remark_bytes = value_bytes;
    }
    return 1;
}

static int read_json(struct answer *answer, const char *header, size_t bytes) {
    struct text text = {header, header + bytes};
    unsigned seen = 0;
    if (!take(&text, '{'))
        return 0;
    do {
        if (!json_field(&text, answer, &seen))
            return 0;
    } while (take(&text, ','));
    return take(&text, '}') && text.at == text.end && seen == 7;
}

/* -- ROCKETMQ -------------------------------------------------------------------------------------------------------- */

static int binary_ext_fields(struct answer *answer, struct text text) {
    while (text.at < text.end) {
        if (text.end - text.at < 2)
            return 0;
        size_t name_bytes = read_half(text.at);
        if ((size_t)(text.end - text.at) < 2 + name_bytes + 4)
            return 0;
        const char *name = text.at + 2, *value = name + name_bytes + 4;
        size_t value_bytes = read_word(value - 4);
        if (value_bytes > (size_t)(text.end - value))
            return 0;
        if (equals(name, name_bytes, NEXT_OFFSET) && !integer(value, value_bytes, &answer->next_offset))
            return 0;
        text.at = value + value_bytes;
    }
    return 1;
}

static int read_binary(struct answer *answer, const char *header, size_t bytes) {
    if (bytes < BINARY_HEAD_BYTES)
        return 0;
    answer->code = (int16_t)read_half(header);
    answer->opaque = (int32_t)read_word(header + 5);
    answer->flag = (int32_t)read_word(header + 9);
    answer->remark_bytes = read_word(header + 13);
    if (answer->remark_bytes > bytes - BINARY_HEAD_BYTES)
        return 0;
    answer->remark = header + 17;
    const char *ext = answer->remark + answer->remark_bytes;
    size_t ext_bytes = read_word(ext);
    if (ext_bytes != (size_t)(header + bytes - ext) - 4)
        return 0;
    return binary_ext_fields(answer, (struct text){ext + 4, ext + 4 + ext_bytes});
}

int answer_read(struct answer *answer, uint32_t word, const char *header, size_t bytes) {
    *answer = (struct answer){.next_offset = -1};
    switch (word >> 24) {
    case 0:
        return read_json(answer, header, bytes);
    case 1:
        return read_binary(answer, header, bytes);
    default:
        return 0;
    }
}
