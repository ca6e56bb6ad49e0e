/* instructions: small kernels, one for each instruction that tests/emulate has (instructions.cu.in), and the
 * words that they read. */
#ifndef FPAC_TESTS_EMULATE_INSTRUCTIONS_H
#define FPAC_TESTS_EMULATE_INSTRUCTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { INSTRUCTION_WORDS = 16384, PRODUCTS = 32, INSTRUCTION_NAME = 64 };

/* Columns of products of a warpgroup: all that the emulation has, which kernels are emitted with. */
extern const int product_columns[PRODUCTS];

/* What words are: any bits, mostly of floats of every size; finite floats; exponents of powers of two; pairs
 * of 16-bit numbers of the kernels' type, or of bf16: of every size that products have room for, and small
 * integers; angles of half a turn and less; numbers from 1 to 2. */
enum words { ANY, FLOATS, POWERS, PAIRS, BF16_PAIRS, INTEGERS, ANGLES, ONE_TO_TWO };

/* How results are compared. */
enum check { BITS, FLOAT_BITS /* all NaN are alike */, TWO_ULP, NEAR /* by 2^-20 */ };

typedef struct instruction {
    const char *kernel; /* run_... */
    enum words words;
    enum check check;
    int blocks; /* of 128 threads; two at a time are a cluster, if there are several */
} instruction;

extern const int instruction_count;

/* Kernel i and its name in the text. */
instruction instruction_at(int i, char name[INSTRUCTION_NAME]);

/* The words that a kernel reads, the same each time; f16: of the kernels' 16-bit numbers, which are bf16
 * else. */
void instruction_words(const instruction *kernel, bool f16, uint32_t words[INSTRUCTION_WORDS]);

/* The text of all kernels, malloc'ed; arithmetic: "bf16" or "f16"; of products of a warpgroup the widths first, first + step, ... of product_columns. Stops
 * the test when it cannot be made. */
char *instructions_code(const char *arithmetic, int first, int step);

#endif
