/* nvrtc: compiles CUDA source by NVRTC, and reads registers, spills and warnings from its log. */
#include "nvrtc.h"
#include "abi/cuda_call.h"
#include "base/clock.h"
#include "base/text.h"
#include "nvrtc_library.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Spills of a thread up to this size are not reported: numbers that are needed only before and after all loops. */
enum { PARKED_BYTES = 64 };

/* -v: ptxas writes registers and spills to the log. */
static const char *const fixed_options[] = {"--std=c++17", "--ptxas-options=-v"};

enum { FIXED_OPTIONS = sizeof fixed_options / sizeof *fixed_options };

/* The decode program has several kernels, and is the longest program of many heads: NVRTC compiles its kernels in parallel.
 * Other programs may have warpgroup products, and with this option ptxas' warnings that it serialises them go to stderr
 * instead of the log. */
static const char split_compile[] = "--split-compile=4";

enum { SPLIT_VERSION = 13 }; /* NVRTC that knows the option */

static bool is_split(const struct nvrtc_library *nvrtc, int part)
{
    return part == FPA_CUDA_PART_DECODE && atoi(nvrtc->version) >= SPLIT_VERSION;
}

/* The user's additional options. */
static const char *flags_of_environment(void)
{
    const char *flags = getenv("FPA_NVRTC_FLAGS");
    return flags ? flags : "";
}

void nvrtc_report_free(nvrtc_report *report)
{
    free(report->log);
    memset(report, 0, sizeof *report);
}

fpa_status nvrtc_find(const char **version, fpa_error *error)
{
    const struct nvrtc_library *nvrtc;
    fpa_status status = nvrtc_library_find(&nvrtc, error);
    *version = status ? NULL : nvrtc->version;
    return status;
}

fpa_status nvrtc_identity(const fpa_target *target, char **identity, fpa_error *error)
{
    const struct nvrtc_library *nvrtc;
    text_buffer buffer;
    *identity = NULL;
    fpa_status status = nvrtc_library_find(&nvrtc, error);
    if (status)
        return status;
    FILE *text = text_open(&buffer);
    if (!text)
        return fail_memory(error);
    /* the size, since patch releases have the same version number */
    fprintf(text, "nvrtc %s\nsize %lld\noption --gpu-architecture=%s\n", nvrtc->version, nvrtc->file_size,
            target->march);
    for (int i = 0; i < FIXED_OPTIONS; i++)
        fprintf(text, "option %s\n", fixed_options[i]);
    if (is_split(nvrtc, FPA_CUDA_PART_DECODE))
        fprintf(text, "option %s in program %d\n", split_compile, FPA_CUDA_PART_DECODE);
    fprintf(text, "flags %s\n", flags_of_environment());
    *identity = text_finish(&buffer);
    return *identity ? FPA_OK : fail_memory(error);
}

/* Reading the log */

static bool begins(const char *line, const char *start)
{
    return strncmp(line, start, strlen(start)) == 0;
}

/* The number directly before a text in a line; -1: there is none. */
static long long number_before(const char *line, const char *text)
{
    const char *end = strstr(line, text);
    if (!end)
        return -1;
    const char *start = end;
    while (start > line && isdigit((unsigned char)start[-1]))
        start--;
    return start < end ? atoll(start) : -1;
}

/* Copies the part of a line in single quotes. */
static void quoted(const char *line, char *name, size_t size)
{
    const char *start = strchr(line, '\'');
    const char *end = start ? strchr(start + 1, '\'') : NULL;
    if (end)
        snprintf(name, size, "%.*s", (int)(end - start - 1), start + 1);
}

static bool tells_of_serialized(const char *text)
{
    return strstr(text, "wgmma.mma_async instructions are serialized");
}

static bool is_figure(const char *line)
{
    static const char *const starts[] = {"ptxas         .",
                                         "ptxas info    : Used ",
                                         "ptxas info    : Compiling entry function",
                                         "ptxas info    : Function properties",
                                         "ptxas info    : Compile time",
                                         "Remark:"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (begins(line, starts[i]))
            return true;
    return begins(line, "ptxas info    : ") && strstr(line, " bytes gmem");
}

/* Calls visit with each line of the log. */
static void each_line(const char *log, void (*visit)(const char *line, void *user), void *user)
{
    char line[512];
    for (const char *next; log && *log; log = next) {
        size_t length = strcspn(log, "\r\n");
        snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), log);
        next = log + length + strspn(log + length, "\r\n");
        visit(line, user);
    }
}

static void take_figures(const char *line, void *user)
{
    nvrtc_report *report = user;
    long long spilled = number_before(line, " bytes spill stores");
    long long registers = number_before(line, " registers");
    if (begins(line, "ptxas") && spilled > 0)
        report->spill_bytes += spilled;
    if (begins(line, "ptxas") && registers > report->registers)
        report->registers = (int)registers;
}

/* Lines joined to one text. */
typedef struct joined {
    char *text;
    size_t size, used;
    char kernel[80]; /* the kernel of the lines that follow */
} joined;

static void join(joined *j, const char *line)
{
    while (*line == ' ' || *line == '\t')
        line++;
    if (!*line || strcmp(line, "^") == 0 || j->used + 1 >= j->size)
        return;
    int wrote = snprintf(j->text + j->used, j->size - j->used, "%s%s", j->used ? " | " : "", line);
    j->used = wrote < 0 || j->used + (size_t)wrote >= j->size ? j->size - 1 : j->used + (size_t)wrote;
}

static void join_error(const char *line, void *user)
{
    if (!is_figure(line))
        join(user, line);
}

static void join_line(const char *line, void *user)
{
    join(user, line);
}

static void join_remark(const char *line, void *user)
{
    char spills[160];
    joined *j = user;
    if (begins(line, "ptxas info    : Compiling entry function"))
        quoted(line, j->kernel, sizeof j->kernel);
    long long spilled = begins(line, "ptxas") ? number_before(line, " bytes spill stores") : 0;
    snprintf(spills, sizeof spills, "%s spills %lld bytes of registers", j->kernel, spilled);
    if (spilled > PARKED_BYTES)
        join(j, spills);
    else if (tells_of_serialized(line))
        join(j, strstr(line, "wgmma"));
    else
        join_error(line, j);
}

bool nvrtc_remarks(const nvrtc_report *report, char *text, size_t size)
{
    joined j = {.text = text, .size = size};
    *text = 0;
    each_line(report->log, join_remark, &j);
    return j.used > 0;
}

bool nvrtc_warns(const char *remarks, const fpa_target *target)
{
    return !target->warpgroups || strstr(remarks, "serialized") || strstr(remarks, "warning");
}

/* Compiling */

/* Checks that NVRTC knows the target, since it reports an unknown one only as an invalid option. */
static fpa_status check_target(const struct nvrtc_library *nvrtc, const fpa_target *target, fpa_error *error)
{
    for (int i = 0; i < nvrtc->architectures; i++)
        if (nvrtc->architecture[i] == target->capability)
            return FPA_OK;
    return fail(error, FPA_UNSUPPORTED, target->name,
                "NVRTC %s does not support %s; name another in FPA_LIBNVRTC (a newer one for a newer GPU)",
                nvrtc->version, target->march);
}

static void read_log(const struct nvrtc_library *nvrtc, nvrtcProgram program, nvrtc_report *report)
{
    size_t size = 0;
    if (nvrtc->nvrtcGetProgramLogSize(program, &size) || size == 0)
        return;
    report->log = calloc(size + 1, 1);
    if (report->log && nvrtc->nvrtcGetProgramLog(program, report->log))
        *report->log = 0;
    each_line(report->log, take_figures, report);
}

static fpa_status judge(const struct nvrtc_library *nvrtc, nvrtcResult result, const char *file,
                        const nvrtc_report *report, fpa_error *error)
{
    char text[800];
    joined j = {.text = text, .size = sizeof text};
    if (result == NVRTC_SUCCESS)
        return FPA_OK;
    if (result == NVRTC_ERROR_OUT_OF_MEMORY)
        return fail_memory(error);
    *text = 0;
    each_line(report->log, join_error, &j);
    if (!*text) /* if ptxas fails, the log has only lines of figures, which show for example too much shared memory */
        each_line(report->log, join_line, &j);
    return fail(error, FPA_COMPILE, file, "NVRTC %s failed (%s): %s", nvrtc->version,
                nvrtc->nvrtcGetErrorString(result), *text ? text : "it said nothing");
}

static fpa_status read_result(const struct nvrtc_library *nvrtc, nvrtcProgram program, const char *file,
                              bool ptx, fpa_object *object, fpa_error *error)
{
    size_t size = 0;
    nvrtcResult result =
        ptx ? nvrtc->nvrtcGetPTXSize(program, &size) : nvrtc->nvrtcGetCUBINSize(program, &size);
    if (result || size == 0)
        return fail(error, FPA_COMPILE, file, "NVRTC %s returned no code (%s)", nvrtc->version,
                    nvrtc->nvrtcGetErrorString(result));
    object->bytes = calloc(size + 1, 1);
    if (!object->bytes)
        return fail_memory(error);
    result = ptx ? nvrtc->nvrtcGetPTX(program, (char *)object->bytes)
                 : nvrtc->nvrtcGetCUBIN(program, (char *)object->bytes);
    if (result) {
        free(object->bytes);
        object->bytes = NULL;
        return fail(error, FPA_COMPILE, file, "the result of NVRTC %s cannot be read (%s)", nvrtc->version,
                    nvrtc->nvrtcGetErrorString(result));
    }
    object->size = ptx ? strlen((char *)object->bytes) : size;
    return FPA_OK;
}

enum { MOST_FLAGS = 16, MOST_OPTIONS = 4 + FIXED_OPTIONS + MOST_FLAGS };

/* ptxas reports only after a compilation that it has serialised wgmma instructions. Kernels that have a variant without this, which takes
 * longer to compile, have it under this macro, which is defined for a second compilation. */
static const char second_version[] = "--define-macro=FPA_CUDA_SERIALIZED";

/* Whether a second compilation may help: with --Ofast-compile ptxas serialises both variants. */
static bool has_second_version(const char *code)
{
    return strstr(code, second_version + strlen("--define-macro=")) &&
           !strstr(flags_of_environment(), "--Ofast-compile");
}

typedef struct option_list {
    int count;
    const char *item[MOST_OPTIONS];
    char architecture[64], part[64], flags[512];
} option_list;

static fpa_status add_flags(option_list *options, fpa_error *error)
{
    char *rest = NULL;
    const int size = snprintf(options->flags, sizeof options->flags, "%s", flags_of_environment());
    const int most = options->count + MOST_FLAGS;
    bool fit = size < (int)sizeof options->flags;
    for (char *word = strtok_r(options->flags, " ", &rest); word && fit; word = strtok_r(NULL, " ", &rest)) {
        fit = options->count < most;
        if (fit)
            options->item[options->count++] = word;
    }
    return fit ? FPA_OK
               : fail(error, FPA_INVALID, "FPA_NVRTC_FLAGS", "has more than %d words or %zu characters",
                      MOST_FLAGS, sizeof options->flags - 1);
}

/* Options of this file, then those of all files. second: compiles the variant against serialisation. */
static fpa_status make_options(const struct nvrtc_library *nvrtc, const nvrtc_input *input, bool second,
                               option_list *options, fpa_error *error)
{
    options->count = 0;
    snprintf(options->architecture, sizeof options->architecture, "--gpu-architecture=%s%s",
             input->ptx ? "compute_" : "sm_", input->target->march + strlen("sm_"));
    snprintf(options->part, sizeof options->part, "--define-macro=FPA_CUDA_PART=%d", input->part);
    options->item[options->count++] = options->architecture;
    if (input->part > 0)
        options->item[options->count++] = options->part;
    if (second)
        options->item[options->count++] = second_version;
    if (is_split(nvrtc, input->part) && !input->ptx)
        options->item[options->count++] = split_compile;
    for (int i = 0; i < FIXED_OPTIONS; i++)
        options->item[options->count++] = fixed_options[i];
    return add_flags(options, error);
}

static fpa_status run(const struct nvrtc_library *nvrtc, const nvrtc_input *input, bool second,
                      fpa_object *object, nvrtc_report *report, fpa_error *error)
{
    option_list options;
    nvrtcProgram program = NULL;
    fpa_status status = make_options(nvrtc, input, second, &options, error);
    if (status)
        return status;
    const double start = clock_seconds();
    nvrtcResult result = nvrtc->nvrtcCreateProgram(&program, input->code, input->file, 0, NULL, NULL);
    if (result)
        return judge(nvrtc, result, input->file, report, error);
    result = nvrtc->nvrtcCompileProgram(program, options.count, options.item);
    report->seconds += clock_seconds() - start;
    read_log(nvrtc, program, report);
    status = judge(nvrtc, result, input->file, report, error);
    if (!status)
        status = read_result(nvrtc, program, input->file, input->ptx, object, error);
    nvrtc->nvrtcDestroyProgram(&program);
    return status;
}

/* Compiles the second variant, and takes it unless its wgmma instructions are serialised too: then the first result and its warning stay.
 * The seconds of both compilations count. */
static void try_second(const struct nvrtc_library *nvrtc, const nvrtc_input *input, fpa_object *object,
                       nvrtc_report *report)
{
    fpa_error error;
    fpa_object other = {0};
    nvrtc_report said = {.seconds = report->seconds};
    memcpy(said.version, report->version, sizeof said.version);
    const fpa_status status = run(nvrtc, input, true, &other, &said, &error);
    report->seconds = said.seconds;
    if (status || (said.log && tells_of_serialized(said.log))) {
        free(other.bytes);
        nvrtc_report_free(&said);
        return;
    }
    free(object->bytes);
    nvrtc_report_free(report);
    *object = other;
    *report = said;
}

/* Programs are independent: NVRTC may compile on several threads at once, without a lock of ours ("Thread Safety" in its guide). */
fpa_status nvrtc_compile(const nvrtc_input *input, fpa_object *object, nvrtc_report *report, fpa_error *error)
{
    const struct nvrtc_library *nvrtc;
    memset(object, 0, sizeof *object);
    memset(report, 0, sizeof *report);
    fpa_status status = nvrtc_library_find(&nvrtc, error);
    if (!status)
        status = check_target(nvrtc, input->target, error);
    if (status)
        return status;
    snprintf(report->version, sizeof report->version, "%s", nvrtc->version);
    status = run(nvrtc, input, false, object, report, error);
    if (!status && report->log && tells_of_serialized(report->log) && has_second_version(input->code))
        try_second(nvrtc, input, object, report);
    return status;
}
