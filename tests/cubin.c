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
    (void)file;
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
