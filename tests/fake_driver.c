#include "fake_driver.h"

#include "claims.h"
#include "program.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

char fake_folder[64], fake_path[128];

void in_child(const char *library, int (*claim)(void))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("FPA_LIBCUDA", library, 1);
        _exit(claim());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

struct fake_state *fake(void)
{
    void *library = dlopen(fake_path, RTLD_NOW);
    return library ? dlsym(library, "fake_state") : NULL;
}

int compile_fake(void **state)
{
    scratch_make(fake_folder);
    snprintf(fake_path, sizeof fake_path, "%s/libcuda.so.1", fake_folder);
    program_result result =
        RUN("/usr/bin/env", "cc", "-I.", "-shared", "-fPIC", "-o", fake_path, "tests/driver/fake_libcuda.c");
    if (result.code)
        print_error("%s", result.err);
    int code = result.code;
    program_free(&result);
    return code;
}

int remove_fake(void **state)
{
    scratch_remove(fake_folder);
    return 0;
}

image make_image(void)
{
    image i = {.text = "code"};
    memcpy(i.header.e_ident, ELFMAG, SELFMAG);
    i.header.e_ident[EI_CLASS] = ELFCLASS64;
    i.header.e_machine = 190;
    i.header.e_shoff = offsetof(image, sections);
    i.header.e_shentsize = sizeof(Elf64_Shdr);
    i.header.e_shnum = 2;
    i.header.e_shstrndx = 1;
    i.sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = offsetof(image, text), .sh_size = 16};
    return i;
}

struct fake_state *fake_with_geometry(void)
{
    struct fake_state *f = fake();
    f->geometry = (struct fpa_cuda_geometry){
        .version = FPA_CUDA_VERSION,
        .features = 64,
        .kernel[CUDA_CHUNK_STATE].threads = 256,
        .kernel[CUDA_CHUNK_STATE].bytes = 100 * 1024,
        .kernel[CUDA_CHUNK_OUTPUT].threads = 128,
        .kernel[CUDA_CHUNK_OUTPUT].bytes = 200 * 1024,
        .kernel[CUDA_FUSED_CHUNK].threads = 128,
        .kernel[CUDA_FUSED_CHUNK].bytes = 90 * 1024,
        .kernel[CUDA_DECODE] = {64, 72 * 1024},
        .kernel[CUDA_SEGMENT_SCAN].threads = 256,
        .kernel[CUDA_SPLIT_REDUCTION].threads = 64,
    };
    f->geometry_size = sizeof f->geometry;
    return f;
}

bool nothing_is_held(const struct fake_state *f)
{
    return f->contexts == 0 && f->depth == 0 && f->modules == 0 && f->allocations == 0;
}

fpa_status load(int device, fpa_module *module, fpa_error *error)
{
    image i = make_image();
    const fpa_object object = {(unsigned char *)&i, sizeof i};
    const fpa_options options = {.device = device};
    return backend_cuda.load(&options, &object, "toy", module, error);
}
