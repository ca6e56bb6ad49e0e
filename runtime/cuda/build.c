/* build: compiles a source by NVRTC, as several programs in parallel whose cubins are joined. */
#include "build.h"
#include "backend.h"
#include "image.h"
#include "nvrtc.h"
#include "programs.h"
#include "base/parallel.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fpa_status cuda_identity(const fpa_options *options, const char *name, char **identity,
                                fpa_error *error)
{
    const fpa_target *target;
    (void)options; /* none of them changes what NVRTC writes */
    *identity = NULL;
    fpa_status status = cuda_target(name, &target, error);
    return status ? status : nvrtc_identity(target, identity, error);
}

/* programs: text about the programs that were compiled in parallel; the report is that of the slowest. "": one program. */
static void log_report(const fpa_options *options, const char *name, const fpa_target *target,
                       const nvrtc_report *report, const char *programs)
{
    char figures[96] = "", remarks[800];
    if (report->registers > 0)
        snprintf(figures, sizeof figures, ", at most %d registers, %lld bytes of spills", report->registers,
                 report->spill_bytes);
    log_line(options, "%s: NVRTC %s for %s: %.2f s%s%s", name, report->version, target->march,
             report->seconds, programs, figures);
    if (nvrtc_remarks(report, remarks, sizeof remarks))
        log_line(options, "%s: %s: %s", name, nvrtc_warns(remarks, target) ? "warning" : "note", remarks);
}

fpa_status cuda_compile(const fpa_options *options, const fpa_source *source, bool ptx, fpa_object *object,
                        nvrtc_report *report, fpa_error *error)
{
    char file[HEAD_MAX_NAME + 8];
    nvrtc_input input = {.code = source->code, .file = file, .ptx = ptx};
    memset(object, 0, sizeof *object);
    memset(report, 0, sizeof *report);
    fpa_status status = cuda_target(source->facts.target, &input.target, error);
    if (status)
        return status;
    snprintf(file, sizeof file, "%s.cu", source->facts.name);
    status = nvrtc_compile(&input, object, report, error);
    if (!status)
        log_report(options, source->facts.name, input.target, report, "");
    return status;
}

/* One of the programs among which a file's kernels are distributed. */
typedef struct part {
    bool wanted; /* it has kernels; programs without any are not compiled, since parsing alone takes time */
    const file_programs *all;
    bool whole; /* its own text did not compile, but the whole file did */
    nvrtc_input input;
    fpa_object object;
    nvrtc_report report;
    fpa_status status;
    fpa_error error;
} part;

/* If a program's own text does not compile, programs_text() may have cut it wrongly: then the whole file is compiled, which the log
 * says. */
static void compile_part(int index, void *user)
{
    /* the longest first, since programs are compiled as threads become free */
    static const int order[FPA_CUDA_PARTS] = {FPA_CUDA_PART_FUSED,
                                              FPA_CUDA_PART_CHUNK_STATE,
                                              FPA_CUDA_PART_CHUNK_OUTPUT,
                                              FPA_CUDA_PART_DECODE_RECENT,
                                              FPA_CUDA_PART_DECODE_DRAFT,
                                              FPA_CUDA_PART_DECODE,
                                              FPA_CUDA_PART_CHUNK_STATE_SMALL,
                                              FPA_CUDA_PART_ROWS};
    part *p = (part *)user + order[index] - 1;
    if (!p->wanted)
        return;
    const char *all = p->input.code;
    char *own = programs_text(p->all, p->input.part);
    if (!own) {
        p->status = fail_memory(&p->error);
        return;
    }
    p->input.code = own;
    p->status = nvrtc_compile(&p->input, &p->object, &p->report, &p->error);
    p->input.code = all;
    free(own);
    if (p->status != FPA_COMPILE)
        return;
    nvrtc_report_free(&p->report);
    p->status = nvrtc_compile(&p->input, &p->object, &p->report, &p->error);
    p->whole = p->status == FPA_OK;
}

/* Logs the reports of all programs as one. */
static void log_parts(const fpa_options *options, const char *name, const part parts[])
{
    nvrtc_report all = {0};
    char programs[48 + 8 * FPA_CUDA_PARTS] = ", the longest of these programs:";
    text_buffer buffer;
    FILE *text = text_open(&buffer);
    for (int i = 0; i < FPA_CUDA_PARTS; i++) {
        const nvrtc_report *its = &parts[i].report;
        if (!parts[i].wanted)
            continue;
        if (parts[i].whole)
            log_line(options, "%s: note: program %d was compiled by the text of all, its own did not compile",
                     name, i + 1);
        memcpy(all.version, its->version, sizeof all.version);
        all.seconds = its->seconds > all.seconds ? its->seconds : all.seconds;
        all.registers = its->registers > all.registers ? its->registers : all.registers;
        all.spill_bytes += its->spill_bytes;
        snprintf(programs + strlen(programs), sizeof programs - strlen(programs), " %.2f", its->seconds);
        if (text && its->log)
            fprintf(text, "%s\n", its->log);
    }
    all.log = text ? text_finish(&buffer) : NULL;
    log_report(options, name, parts[0].input.target, &all, programs);
    free(all.log);
}

/* Joins the cubins of all parts; the error is that of the first part that failed. A part may have no kernels. */
static fpa_status join_parts(const fpa_options *options, const char *name, const part parts[],
                             fpa_object *object, fpa_error *error)
{
    fpa_object images[FPA_CUDA_PARTS];
    int count = 0;
    for (int i = 0; i < FPA_CUDA_PARTS; i++) {
        if (parts[i].status && error)
            *error = parts[i].error;
        if (parts[i].status)
            return parts[i].status;
        if (parts[i].wanted && !image_is_empty(&parts[i].object))
            images[count++] = parts[i].object;
    }
    log_parts(options, name, parts);
    return image_join(images, count, object, error);
}

/* Compiles all parts in parallel: this takes as long as the largest instead of all. */
static fpa_status compile(const fpa_options *options, const fpa_source *source, fpa_object *object,
                          fpa_error *error)
{
    char file[HEAD_MAX_NAME + 8];
    const fpa_target *target;
    part parts[FPA_CUDA_PARTS];
    *object = (fpa_object){NULL, 0};
    fpa_status status = cuda_target(source->facts.target, &target, error);
    if (status)
        return status;
    snprintf(file, sizeof file, "%s.cu", source->facts.name);
    file_programs *all = programs_read(source->code);
    if (!all)
        return fail_memory(error);
    for (int i = 0; i < FPA_CUDA_PARTS; i++)
        parts[i] = (part){.wanted = programs_has(all, i + 1),
                          .all = all,
                          .input = {source->code, file, target, false, i + 1}};
    parallel_run(FPA_CUDA_PARTS, compile_part, parts);
    status = join_parts(options, source->facts.name, parts, object, error);
    for (int i = 0; i < FPA_CUDA_PARTS; i++) {
        free(parts[i].object.bytes);
        nvrtc_report_free(&parts[i].report);
    }
    programs_free(all);
    return status;
}

const fpa_builder builder_cuda = {.identity = cuda_identity, .compile = compile};
