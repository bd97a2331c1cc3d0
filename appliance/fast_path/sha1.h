/* SHA-1 and HMAC-SHA1 of bytes (FIPS 180-4, RFC 2104): what requests are signed with. RocketMQ's clients choose it.
 *
 * A key is worked in once, which saves two blocks of each signature. Two ways give the same numbers:
 *   x86-64 with the SHA extensions  4 rounds an instruction
 *   any other                       word by word
 */
#ifndef GANTRY_SHA1_H
#define GANTRY_SHA1_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define GANTRY_SHA1_X86 1
#include <cpuid.h>
#include <immintrin.h>
#endif

#define GANTRY_SHA1_BLOCK 64
#define GANTRY_SHA1_DIGEST 20

typedef struct {
    uint32_t words[5];
} GantrySha1State;

/* The states after the first block: the key with the inner and with the outer padding. */
typedef struct {
    GantrySha1State inner, outer;
} GantryHmacKey;

typedef void (*GantrySha1Way)(GantrySha1State *, const uint8_t *, size_t);

static const GantrySha1State gantry_sha1_first = {{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0}};

static inline uint32_t gantry_sha1_turn(uint32_t word, int bits) { return word << bits | word >> (32 - bits); }

static inline uint32_t gantry_sha1_load(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static inline void gantry_sha1_store(uint8_t *bytes, uint32_t word) {
    bytes[0] = (uint8_t)(word >> 24), bytes[1] = (uint8_t)(word >> 16);
    bytes[2] = (uint8_t)(word >> 8), bytes[3] = (uint8_t)word;
}

/* Word `round` of the schedule, in the place of the oldest one. */
static inline uint32_t gantry_sha1_word(uint32_t *w, int round) {
    uint32_t mixed = w[(round + 13) & 15] ^ w[(round + 8) & 15] ^ w[(round + 2) & 15] ^ w[round & 15];
    return w[round & 15] = gantry_sha1_turn(mixed, 1);
}

/* Twenty rounds of one kind: unrolled, so that no word moves. */
#define GANTRY_SHA1_TWENTY(kind, mix, constant)                                                            \
    _Pragma("GCC unroll 20") for (int round = 20 * (kind); round < 20 * (kind) + 20; round++) {            \
        e += gantry_sha1_turn(a, 5) + (mix) + (constant) + (round < 16 ? w[round] : gantry_sha1_word(w, round)); \
        mixed = e, e = d, d = c, c = gantry_sha1_turn(b, 30), b = a, a = mixed;                            \
    }

static void gantry_sha1_by_words(GantrySha1State *state, const uint8_t *bytes, size_t blocks) {
    for (; blocks; blocks--, bytes += GANTRY_SHA1_BLOCK) {
        uint32_t w[16], a = state->words[0], b = state->words[1], c = state->words[2], d = state->words[3];
        uint32_t e = state->words[4], mixed;
        for (int word = 0; word < 16; word++) w[word] = gantry_sha1_load(bytes + 4 * word);
        GANTRY_SHA1_TWENTY(0, d ^ (b & (c ^ d)), 0x5A827999)
        GANTRY_SHA1_TWENTY(1, b ^ c ^ d, 0x6ED9EBA1)
        GANTRY_SHA1_TWENTY(2, (b & c) | (d & (b | c)), 0x8F1BBCDC)
        GANTRY_SHA1_TWENTY(3, b ^ c ^ d, 0xCA62C1D6)
        state->words[0] += a, state->words[1] += b, state->words[2] += c, state->words[3] += d, state->words[4] += e;
    }
}

#ifdef GANTRY_SHA1_X86
#define GANTRY_SHA1_TARGET __attribute__((target("sha,sse4.1,ssse3")))

/* The next four words of the schedule, in the place of the oldest four. */
GANTRY_SHA1_TARGET static inline __m128i gantry_sha1_next(const __m128i *w, int step) {
    __m128i mixed = _mm_xor_si128(_mm_sha1msg1_epu32(w[step & 3], w[(step + 1) & 3]), w[(step + 2) & 3]);
    return _mm_sha1msg2_epu32(mixed, w[(step + 3) & 3]);
}

/* Five times four rounds of one kind; the kind has to be a constant of the instruction. */
#define GANTRY_SHA1_ROUNDS(kind)                                        \
    for (int step = 5 * (kind); step < 5 * (kind) + 5; step++) {        \
        if (step >= 4) w[step & 3] = gantry_sha1_next(w, step);         \
        e = step ? _mm_sha1nexte_epu32(last, w[step & 3]) : _mm_add_epi32(e, w[0]); \
        last = abcd;                                                    \
        abcd = _mm_sha1rnds4_epu32(abcd, e, kind);                      \
    }

GANTRY_SHA1_TARGET static void gantry_sha1_by_sha_ni(GantrySha1State *state, const uint8_t *bytes, size_t blocks) {
    const __m128i big_endian = _mm_set_epi64x(0x0001020304050607, 0x08090A0B0C0D0E0F);
    __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)state->words), 0x1B);
    __m128i e = _mm_set_epi32((int)state->words[4], 0, 0, 0), last = abcd, w[4];
    for (; blocks; blocks--, bytes += GANTRY_SHA1_BLOCK) {
        __m128i abcd_before = abcd, e_before = e;
        for (int part = 0; part < 4; part++)
            w[part] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(bytes + 16 * part)), big_endian);
        GANTRY_SHA1_ROUNDS(0)
        GANTRY_SHA1_ROUNDS(1)
        GANTRY_SHA1_ROUNDS(2)
        GANTRY_SHA1_ROUNDS(3)
        e = _mm_sha1nexte_epu32(last, e_before);
        abcd = _mm_add_epi32(abcd, abcd_before);
    }
    _mm_storeu_si128((__m128i *)(void *)state->words, _mm_shuffle_epi32(abcd, 0x1B));
    state->words[4] = (uint32_t)_mm_extract_epi32(e, 3);
}
#endif

static GantrySha1Way gantry_sha1_way = gantry_sha1_by_words;

__attribute__((constructor)) static void gantry_sha1_start(void) {
#ifdef GANTRY_SHA1_X86
    unsigned a, b, c, d; /* not __builtin_cpu_supports, see crc32.h */
    if (__get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_1 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA)
        gantry_sha1_way = gantry_sha1_by_sha_ni;
#endif
}

/* Whether this processor has no better way: for tests. */
static inline int gantry_sha1_is_by_words(void) { return gantry_sha1_way == gantry_sha1_by_words; }

/* Work in a key: 64 bytes each, with the inner and with the outer padding. */
static inline void gantry_hmac_sha1_key(GantryHmacKey *key, const uint8_t *inner, const uint8_t *outer) {
    key->inner = key->outer = gantry_sha1_first;
    gantry_sha1_way(&key->inner, inner, 1);
    gantry_sha1_way(&key->outer, outer, 1);
}

/* Pad the last bytes, fewer than a block, and take the digest; total: all bytes of the hash. */
static inline void gantry_sha1_end(GantrySha1Way way, GantrySha1State *state, const uint8_t *rest, size_t count,
                                   uint64_t total, uint8_t *digest) {
    uint8_t end[2 * GANTRY_SHA1_BLOCK] = {0};
    size_t size = count < GANTRY_SHA1_BLOCK - 8 ? GANTRY_SHA1_BLOCK : 2 * GANTRY_SHA1_BLOCK;
    memcpy(end, rest, count);
    end[count] = 0x80;
    gantry_sha1_store(end + size - 8, (uint32_t)(total >> 29));
    gantry_sha1_store(end + size - 4, (uint32_t)(total << 3));
    way(state, end, size / GANTRY_SHA1_BLOCK);
    for (int word = 0; word < 5; word++) gantry_sha1_store(digest + 4 * word, state->words[word]);
}

/* HMAC-SHA1 of two pieces, one behind the other: 20 bytes. */
static inline void gantry_hmac_sha1_by(GantrySha1Way way, const GantryHmacKey *key, const uint8_t *first,
                                       size_t first_size, const uint8_t *second, size_t second_size, uint8_t *digest) {
    uint8_t border[GANTRY_SHA1_BLOCK];
    GantrySha1State state = key->inner;
    uint64_t total = GANTRY_SHA1_BLOCK + (uint64_t)first_size + second_size;
    size_t blocks = first_size / GANTRY_SHA1_BLOCK, rest = first_size % GANTRY_SHA1_BLOCK, taken;
    way(&state, first, blocks);
    first += blocks * GANTRY_SHA1_BLOCK;
    if (rest) { /* the block in which both meet */
        taken = second_size < GANTRY_SHA1_BLOCK - rest ? second_size : GANTRY_SHA1_BLOCK - rest;
        memcpy(border, first, rest);
        memcpy(border + rest, second, taken);
        second += taken, second_size -= taken, rest += taken;
        if (rest == GANTRY_SHA1_BLOCK) way(&state, border, 1), rest = 0;
    }
    if (rest) {
        gantry_sha1_end(way, &state, border, rest, total, digest);
    } else {
        blocks = second_size / GANTRY_SHA1_BLOCK;
        way(&state, second, blocks);
        gantry_sha1_end(way, &state, second + blocks * GANTRY_SHA1_BLOCK, second_size % GANTRY_SHA1_BLOCK, total, digest);
    }
    state = key->outer;
    gantry_sha1_end(way, &state, digest, GANTRY_SHA1_DIGEST, GANTRY_SHA1_BLOCK + GANTRY_SHA1_DIGEST, digest);
}

static inline void gantry_hmac_sha1(const GantryHmacKey *key, const uint8_t *first, size_t first_size,
                                    const uint8_t *second, size_t second_size, uint8_t *digest) {
    gantry_hmac_sha1_by(gantry_sha1_way, key, first, first_size, second, second_size, digest);
}

/* The same word by word, whatever the processor can: for tests. */
static inline void gantry_hmac_sha1_by_words(const GantryHmacKey *key, const uint8_t *first, size_t first_size,
                                             const uint8_t *second, size_t second_size, uint8_t *digest) {
    gantry_hmac_sha1_by(gantry_sha1_by_words, key, first, first_size, second, second_size, digest);
}

/* Base64 of a digest: 28 characters. */
static inline void gantry_sha1_text(const uint8_t *digest, uint8_t *text) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t group;
    for (int at = 0; at < 18; at += 3, text += 4) {
        group = (uint32_t)digest[at] << 16 | (uint32_t)digest[at + 1] << 8 | digest[at + 2];
        for (int place = 0; place < 4; place++) text[place] = (uint8_t)letters[group >> (18 - 6 * place) & 63];
    }
    group = (uint32_t)digest[18] << 16 | (uint32_t)digest[19] << 8;
    text[0] = (uint8_t)letters[group >> 18 & 63], text[1] = (uint8_t)letters[group >> 12 & 63];
    text[2] = (uint8_t)letters[group >> 6 & 63], text[3] = '=';
}

/* Whether both are the same; the time does not tell where they differ. */
static inline int gantry_is_same_text(const uint8_t *one, const uint8_t *other, size_t count) {
    volatile uint8_t difference = 0;
    for (size_t at = 0; at < count; at++) difference = (uint8_t)(difference | (one[at] ^ other[at]));
    return difference == 0;
}

#endif
