/* CRC-32 of bytes as zlib and java.util.zip.CRC32 compute it (polynomial 0x04C11DB7, bits reflected).
 *
 * gantry_crc32(bytes, count) needs no Python object, no lock and no start: tables and the choice of a way are made when
 * the module is loaded. Three ways give the same number:
 *   x86-64 with PCLMULQDQ  64 bytes a step by carry-less multiplication (Gopal et al., "Fast CRC Computation for
 *                          Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009)
 *   ARMv8 with CRC32       8 bytes an instruction
 *   any other              8 bytes a step with eight tables
 */
#ifndef GANTRY_CRC32_H
#define GANTRY_CRC32_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define GANTRY_CRC32_X86 1
#include <cpuid.h>
#include <emmintrin.h>
#include <smmintrin.h>
#include <wmmintrin.h>
#elif defined(__aarch64__) && defined(__linux__) && defined(__GNUC__)
#define GANTRY_CRC32_ARM 1
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

#define GANTRY_CRC32_REFLECTED 0xEDB88320u
#define GANTRY_CRC32_LITTLE_ENDIAN (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

/* [k][b]: what the byte b does to the remainder k bytes later. */
static uint32_t gantry_crc32_tables[8][256];

/* The functions below take and return the remainder itself: zlib's number with all bits turned. */

static uint32_t gantry_crc32_by_tables(uint32_t remainder, const uint8_t *bytes, size_t count) {
#if GANTRY_CRC32_LITTLE_ENDIAN
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        word ^= remainder;
        remainder = gantry_crc32_tables[7][word & 0xFF] ^ gantry_crc32_tables[6][word >> 8 & 0xFF] ^
                    gantry_crc32_tables[5][word >> 16 & 0xFF] ^ gantry_crc32_tables[4][word >> 24 & 0xFF] ^
                    gantry_crc32_tables[3][word >> 32 & 0xFF] ^ gantry_crc32_tables[2][word >> 40 & 0xFF] ^
                    gantry_crc32_tables[1][word >> 48 & 0xFF] ^ gantry_crc32_tables[0][word >> 56];
    }
#endif
    for (; count; bytes++, count--)
        remainder = gantry_crc32_tables[0][(remainder ^ *bytes) & 0xFF] ^ remainder >> 8;
    return remainder;
}

#ifdef GANTRY_CRC32_X86
/* Moves 16 bytes of the dividend on by the distance of the two constants. */
__attribute__((target("pclmul,sse4.1"))) static inline __m128i gantry_crc32_fold(__m128i part, __m128i constants) {
    return _mm_xor_si128(_mm_clmulepi64_si128(part, constants, 0x00), _mm_clmulepi64_si128(part, constants, 0x11));
}

__attribute__((target("pclmul,sse4.1"))) static inline __m128i gantry_crc32_load(const uint8_t *bytes) {
    return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

/* The remainder of 16 bytes: to 8, to 4, then Barrett's reduction. */
__attribute__((target("pclmul,sse4.1"))) static inline uint32_t gantry_crc32_reduce(__m128i part) {
    const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0); /* x^96, x^160: the last step of folding */
    const __m128i by_8 = _mm_set_epi64x(0, 0x163cd6124);            /* x^64 */
    const __m128i polynomial = _mm_set_epi64x(0x1f7011641, 0x1db710641); /* its inverse, itself */
    const __m128i low_32 = _mm_setr_epi32(-1, 0, -1, 0);
    __m128i part_8, quotient;
    part_8 = _mm_xor_si128(_mm_srli_si128(part, 8), _mm_clmulepi64_si128(part, by_16, 0x10));
    part_8 = _mm_xor_si128(_mm_srli_si128(part_8, 4), _mm_clmulepi64_si128(_mm_and_si128(part_8, low_32), by_8, 0x00));
    quotient = _mm_clmulepi64_si128(_mm_and_si128(part_8, low_32), polynomial, 0x10);
    quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_32), polynomial, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(part_8, quotient), 1);
}

__attribute__((target("pclmul,sse4.1"))) static uint32_t gantry_crc32_by_clmul(uint32_t remainder, const uint8_t *bytes,
                                                                               size_t count) {
    const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4); /* x^480, x^544 */
    const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0); /* x^96, x^160 */
    __m128i part;
    if (count < 16) return gantry_crc32_by_tables(remainder, bytes, count);
    part = _mm_xor_si128(gantry_crc32_load(bytes), _mm_cvtsi32_si128((int)remainder));
    if (count >= 64) {
        __m128i part_1 = gantry_crc32_load(bytes + 16);
        __m128i part_2 = gantry_crc32_load(bytes + 32);
        __m128i part_3 = gantry_crc32_load(bytes + 48);
        for (bytes += 64, count -= 64; count >= 64; bytes += 64, count -= 64) {
            part = _mm_xor_si128(gantry_crc32_fold(part, by_64), gantry_crc32_load(bytes));
            part_1 = _mm_xor_si128(gantry_crc32_fold(part_1, by_64), gantry_crc32_load(bytes + 16));
            part_2 = _mm_xor_si128(gantry_crc32_fold(part_2, by_64), gantry_crc32_load(bytes + 32));
            part_3 = _mm_xor_si128(gantry_crc32_fold(part_3, by_64), gantry_crc32_load(bytes + 48));
        }
        part = _mm_xor_si128(gantry_crc32_fold(part, by_16), part_1);
        part = _mm_xor_si128(gantry_crc32_fold(part, by_16), part_2);
        part = _mm_xor_si128(gantry_crc32_fold(part, by_16), part_3);
    } else {
        bytes += 16;
        count -= 16;
    }
    for (; count >= 16; bytes += 16, count -= 16)
        part = _mm_xor_si128(gantry_crc32_fold(part, by_16), gantry_crc32_load(bytes));
    return gantry_crc32_by_tables(gantry_crc32_reduce(part), bytes, count);
}
#endif

#ifdef GANTRY_CRC32_ARM
__attribute__((target("+crc"))) static uint32_t gantry_crc32_by_arm(uint32_t remainder, const uint8_t *bytes,
                                                                    size_t count) {
#if GANTRY_CRC32_LITTLE_ENDIAN
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        remainder = __crc32d(remainder, word);
    }
#endif
    for (; count; bytes++, count--) remainder = __crc32b(remainder, *bytes);
    return remainder;
}
#endif

static uint32_t (*gantry_crc32_way)(uint32_t, const uint8_t *, size_t) = gantry_crc32_by_tables;

__attribute__((constructor)) static void gantry_crc32_start(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t remainder = byte;
        for (int bit = 0; bit < 8; bit++)
            remainder = remainder >> 1 ^ (remainder & 1 ? GANTRY_CRC32_REFLECTED : 0);
        gantry_crc32_tables[0][byte] = remainder;
    }
    for (int later = 1; later < 8; later++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t before = gantry_crc32_tables[later - 1][byte];
            gantry_crc32_tables[later][byte] = gantry_crc32_tables[0][before & 0xFF] ^ before >> 8;
        }
#ifdef GANTRY_CRC32_X86
    unsigned a, b, c, d; /* not __builtin_cpu_supports: with the library that Zig brings, it always says no */
    if (__get_cpuid(1, &a, &b, &c, &d) && c & bit_PCLMUL && c & bit_SSE4_1) gantry_crc32_way = gantry_crc32_by_clmul;
#endif
#ifdef GANTRY_CRC32_ARM
    if (getauxval(AT_HWCAP) & HWCAP_CRC32) gantry_crc32_way = gantry_crc32_by_arm;
#endif
}

/* zlib's crc32(value, bytes, count); value is the CRC of what comes before, 0 at the start. */
static inline uint32_t gantry_crc32_update(uint32_t value, const uint8_t *bytes, size_t count) {
    return ~gantry_crc32_way(~value, bytes, count);
}

static inline uint32_t gantry_crc32(const uint8_t *bytes, size_t count) {
    return gantry_crc32_update(0, bytes, count);
}

/* The same by tables, whatever the processor can: for tests. */
static inline uint32_t gantry_crc32_update_by_tables(uint32_t value, const uint8_t *bytes, size_t count) {
    return ~gantry_crc32_by_tables(~value, bytes, count);
}

/* Whether this processor has no better way: for tests. */
static inline int gantry_crc32_is_by_tables(void) { return gantry_crc32_way == gantry_crc32_by_tables; }

#endif
