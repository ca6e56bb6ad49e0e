/* A cubin is an ELF file. Its section .nv.info holds, for each kernel's symbol, the registers and the
 * stack frame; .nv.info.KERNEL the launch bounds. The records are not documented by NVIDIA; they have
 * had this shape since CUDA 5 (cuobjdump -elf prints them): format, attribute, size, then the data. */
#include "cubin.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FORMAT_SIZED = 4, ATTRIBUTE_MAX_THREADS = 0x05, ATTRIBUTE_FRAME = 0x11, ATTRIBUTE_REGISTERS = 0x2f };

typedef struct elf {
    const unsigned char *bytes;
    size_t size;
    Elf64_Ehdr header;
} elf;

static bool inside(const elf *file, uint64_t from, uint64_t size)
{
    return from <= file->size && size <= file->size - from;
}

static bool read_section(const elf *file, unsigned index, Elf64_Shdr *section)
{
    uint64_t at = file->header.e_shoff + (uint64_t)index * sizeof *section;
    if (index >= file->header.e_shnum || !inside(file, at, sizeof *section))
        return false;
    memcpy(section, file->bytes + at, sizeof *section);
    return section->sh_type == SHT_NOBITS || inside(file, section->sh_offset, section->sh_size);
}

/* A name in a table of names; NULL when it is not ended there. */
static const char *name_at(const elf *file, unsigned table, uint64_t at)
{
    Elf64_Shdr names;
    if (!read_section(file, table, &names) || at >= names.sh_size)
        return NULL;
    const char *name = (const char *)file->bytes + names.sh_offset + at;
    return memchr(name, 0, names.sh_size - at) ? name : NULL;
}

static bool find_section(const elf *file, const char *wanted, Elf64_Shdr *section)
{
    for (unsigned i = 0; i < file->header.e_shnum; i++) {
        const char *name =
            read_section(file, i, section) ? name_at(file, file->header.e_shstrndx, section->sh_name) : NULL;
        if (name && strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

/* The symbol and its name; false behind the last. */
static bool read_symbol(const elf *file, uint64_t index, Elf64_Sym *symbol, const char **name)
{
    Elf64_Shdr table;
    if (!find_section(file, ".symtab", &table) || (index + 1) * sizeof *symbol > table.sh_size)
        return false;
    memcpy(symbol, file->bytes + table.sh_offset + index * sizeof *symbol, sizeof *symbol);
    *name = name_at(file, table.sh_link, symbol->st_name);
    return *name;
}

static uint32_t word_at(const unsigned char *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static cubin_kernel *kernel_of(const elf *file, cubin *result, uint32_t symbol_index)
{
    Elf64_Sym symbol;
    const char *name;
    if (!read_symbol(file, symbol_index, &symbol, &name) || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
        ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL) /* the compiler's own helpers are local */
        return NULL;
    for (int i = 0; i < result->count; i++)
        if (strcmp(result->kernel[i].name, name) == 0)
            return &result->kernel[i];
    if (result->count == CUBIN_MANY_KERNELS)
        return NULL;
    cubin_kernel *kernel = &result->kernel[result->count++];
    *kernel = (cubin_kernel){.registers = -1, .frame = -1};
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    return kernel;
}

/* Call visit for every record with data; the others (format 1 to 3) are 4 bytes long. */
typedef void visit_record(const elf *file, int attribute, const unsigned char *data, size_t size, void *user);
static void walk_records(const elf *file, const Elf64_Shdr *section, visit_record *visit, void *user)
{
    const unsigned char *at = file->bytes + section->sh_offset, *end = at + section->sh_size;
    while (end - at >= 4) {
        size_t size = at[0] == FORMAT_SIZED ? (size_t)at[2] | (size_t)at[3] << 8 : 0;
        if (size > (size_t)(end - at) - 4)
            return;
        if (at[0] == FORMAT_SIZED)
            visit(file, at[1], at + 4, size, user);
        at += 4 + size;
    }
}

static void take_figure(const elf *file, int attribute, const unsigned char *data, size_t size, void *user)
{
    if ((attribute != ATTRIBUTE_REGISTERS && attribute != ATTRIBUTE_FRAME) || size < 8)
        return;
    cubin_kernel *kernel = kernel_of(file, user, word_at(data));
    if (kernel)
        *(attribute == ATTRIBUTE_FRAME ? &kernel->frame : &kernel->registers) = (int)word_at(data + 4);
}

static void take_threads(const elf *file, int attribute, const unsigned char *data, size_t size, void *user)
{
    if (attribute == ATTRIBUTE_MAX_THREADS && size >= 12)
        *(int *)user = (int)(word_at(data) * word_at(data + 4) * word_at(data + 8));
}

static bool open_elf(const unsigned char *bytes, size_t size, elf *file)
{
    *file = (elf){.bytes = bytes, .size = size};
    if (size < sizeof file->header || memcmp(bytes, ELFMAG, SELFMAG) != 0 || bytes[EI_CLASS] != ELFCLASS64)
        return false;
    memcpy(&file->header, bytes, sizeof file->header);
    return file->header.e_machine == EM_CUDA;
}

bool cubin_read(const unsigned char *bytes, size_t size, cubin *result)
{
    elf file;
    Elf64_Shdr section;
    *result = (cubin){0};
    if (!open_elf(bytes, size, &file) || !find_section(&file, ".nv.info", &section))
        return false;
    walk_records(&file, &section, take_figure, result);
    for (int i = 0; i < result->count; i++) {
        char name[CUBIN_NAME + 16];
        snprintf(name, sizeof name, ".nv.info.%s", result->kernel[i].name);
        if (find_section(&file, name, &section))
            walk_records(&file, &section, take_threads, &result->kernel[i].threads);
    }
    return result->count > 0;
}

bool cubin_variable(const unsigned char *bytes, size_t size, const char *wanted, void *value,
                    size_t value_size)
{
    elf file;
    Elf64_Sym symbol;
    Elf64_Shdr section;
    const char *name;
    if (!open_elf(bytes, size, &file))
        return false;
    for (uint64_t i = 0; read_symbol(&file, i, &symbol, &name); i++) {
        if (strcmp(name, wanted) != 0 || symbol.st_size != value_size ||
            !read_section(&file, symbol.st_shndx, &section) || section.sh_type == SHT_NOBITS ||
            symbol.st_value > section.sh_size || value_size > section.sh_size - symbol.st_value)
            continue;
        memcpy(value, bytes + section.sh_offset + symbol.st_value, value_size);
        return true;
    }
    return false;
}

/* ---- machine code ----
 *
 * Instructions of compute capability 7.0 and later have 16 bytes: the operation in bits 0 to 11, a predicate
 * in 12 to 15 (7: always), registers written from bit 16 on, read from 24, 32 and 64 on; clocks until the
 * next one in bits 105 to 108, what it waits for in 116 to 121. Not documented by NVIDIA either; what
 * nvdisasm shows is in line with it. */

enum { FSETP = 0x0b, ISETP = 0x0c, PLOP3 = 0x1c, CS2R = 0x805 };
enum { INSTRUCTION = 16, BY_REGISTERS = 1, ALWAYS = 7, NO_REGISTER = 255 };

/* Clocks after which results of CS2R are there. It leaves 13 or more where nothing else may write them; reads
 * after 5 have failed on an H200, those after 6 to 12 that some heads have did not. */
enum { CLEARED = 6 };

typedef struct instruction {
    uint64_t low, high;
} instruction;

static instruction instruction_at(const unsigned char *code)
{
    instruction x;
    memcpy(&x.low, code, sizeof x.low);
    memcpy(&x.high, code + sizeof x.low, sizeof x.high);
    return x;
}

static int bits(uint64_t word, int from, int count)
{
    return (int)(word >> from & ((1u << count) - 1));
}

static bool in_pair(int number, int pair)
{
    return number != NO_REGISTER && (number == pair || number == pair + 1);
}

/* Comparisons write predicates, whose numbers are where others have their third register. */
static bool compares(instruction x)
{
    const int operation = bits(x.low, 0, 9);
    return operation == FSETP || operation == ISETP || operation == PLOP3;
}

static bool reads_pair(instruction x, int pair)
{
    return in_pair(bits(x.low, 24, 8), pair) || (!compares(x) && in_pair(bits(x.high, 0, 8), pair)) ||
           (bits(x.low, 9, 3) == BY_REGISTERS && in_pair(bits(x.low, 32, 8), pair));
}

/* Is the pair that the instruction at `at` clears read too early? */
static bool hurries(const unsigned char *code, size_t size, size_t at)
{
    const instruction clear = instruction_at(code + at);
    const int pair = bits(clear.low, 16, 8);
    bool replaced = false; /* perhaps: under a predicate */
    int clocks = bits(clear.high, 41, 4);
    for (at += INSTRUCTION; at < size && clocks < CLEARED; at += INSTRUCTION) {
        const instruction x = instruction_at(code + at);
        if (bits(x.high, 52, 6))
            return false; /* waits for memory: long enough */
        if (replaced && reads_pair(x, pair))
            return true;
        if (bits(x.low, 16, 8) == pair && bits(x.low, 12, 4) == ALWAYS)
            return false;
        replaced = replaced || bits(x.low, 16, 8) == pair;
        clocks += bits(x.high, 41, 4);
    }
    return false;
}

bool cubin_reads_too_early(const unsigned char *bytes, size_t size, char *where, size_t where_size)
{
    elf file;
    Elf64_Shdr section;
    if (!open_elf(bytes, size, &file))
        return false;
    for (unsigned i = 0; i < file.header.e_shnum; i++) {
        const char *name =
            read_section(&file, i, &section) ? name_at(&file, file.header.e_shstrndx, section.sh_name) : NULL;
        if (!name || strncmp(name, ".text.", 6) != 0 || section.sh_type != SHT_PROGBITS)
            continue;
        const unsigned char *code = bytes + section.sh_offset;
        const size_t code_size = section.sh_size / INSTRUCTION * INSTRUCTION;
        for (size_t at = 0; at < code_size; at += INSTRUCTION)
            if (bits(instruction_at(code + at).low, 0, 12) == CS2R && hurries(code, code_size, at)) {
                snprintf(where, where_size, "%s at %zx", name + 6, at);
                return true;
            }
    }
    return false;
}
