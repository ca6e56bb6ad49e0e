/* image: reads and joins cubins, which are ELF files. */
#include "image.h"
#include "base/round.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINE_CUDA = 190 };

/* The end of a part of a file of `size` bytes; 0: it is beyond the file's end. */
static uint64_t end_of(size_t size, uint64_t offset, uint64_t bytes)
{
    return offset <= size && bytes <= size - offset ? offset + bytes : 0;
}

/* Moves *end to the end of a part, if that is farther; false: the part is cut off. */
static bool extend(uint64_t *end, size_t size, uint64_t offset, uint64_t bytes)
{
    uint64_t its = end_of(size, offset, bytes);
    *end = its > *end ? its : *end;
    return its || bytes == 0;
}

static bool read_header(const unsigned char *bytes, size_t size, Elf64_Ehdr *header)
{
    if (size < sizeof *header)
        return false;
    memcpy(header, bytes, sizeof *header);
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_machine == MACHINE_CUDA && header->e_shnum > 0 && header->e_shstrndx < header->e_shnum &&
           header->e_shentsize == sizeof(Elf64_Shdr) &&
           (header->e_phnum == 0 || header->e_phentsize == sizeof(Elf64_Phdr));
}

/* Bytes of the cubin that begins here, without padding; 0: it is no whole cubin. The driver is not told the size and trusts the headers:
 * it would read beyond the end of a truncated file. */
static size_t image_size(const unsigned char *bytes, size_t size)
{
    Elf64_Ehdr header;
    uint64_t end = sizeof header;
    if (!read_header(bytes, size, &header) ||
        !extend(&end, size, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)) ||
        !extend(&end, size, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)))
        return 0;
    for (int i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, bytes + header.e_shoff + (size_t)i * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOBITS && !extend(&end, size, section.sh_offset, section.sh_size))
            return 0;
    }
    for (int i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, bytes + header.e_phoff + (size_t)i * sizeof segment, sizeof segment);
        if (!extend(&end, size, segment.p_offset, segment.p_filesz))
            return 0;
    }
    return (size_t)end;
}

bool image_is_empty(const fpa_object *image)
{
    Elf64_Ehdr header;
    if (image_size(image->bytes, image->size) == 0)
        return false;
    memcpy(&header, image->bytes, sizeof header);
    for (int i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, image->bytes + header.e_shoff + (size_t)i * sizeof section, sizeof section);
        if (section.sh_flags & SHF_EXECINSTR && section.sh_size > 0)
            return false;
    }
    return true;
}

static size_t filled_up(size_t size)
{
    return round_up(size, IMAGE_UNIT);
}

bool image_names(const fpa_object *image, const char *kernel)
{
    char section[128];
    int length = snprintf(section, sizeof section, ".text.%s", kernel);
    return length > 0 && (size_t)length < sizeof section &&
           memmem(image->bytes, image->size, section, (size_t)length + 1);
}

fpa_status image_join(const fpa_object images[], int count, fpa_object *object, fpa_error *error)
{
    size_t size = 0, at = 0;
    *object = (fpa_object){NULL, 0};
    for (int i = 0; i < count; i++) {
        size_t its = image_size(images[i].bytes, images[i].size);
        if (its == 0)
            return fail(error, FPA_COMPILE, "nvrtc",
                        "part %d of the module is not a complete cubin (%zu bytes)", i + 1, images[i].size);
        size += filled_up(its);
    }
    *object = (fpa_object){calloc(size ? size : 1, 1), size};
    if (!object->bytes)
        return fail_memory(error);
    for (int i = 0; i < count; i++) {
        size_t its = image_size(images[i].bytes, images[i].size);
        memcpy(object->bytes + at, images[i].bytes, its);
        at += filled_up(its);
    }
    return FPA_OK;
}

int image_split(const fpa_object *object, fpa_object images[], int most)
{
    int count = 0;
    for (size_t at = 0; at < object->size; at += filled_up(images[count++].size)) {
        size_t its = image_size(object->bytes + at, object->size - at);
        if (its == 0 || count == most)
            return 0;
        images[count] = (fpa_object){object->bytes + at, its};
    }
    return count;
}
