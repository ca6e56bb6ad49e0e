/* report: writes heads as pages of HTML. */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/output.h"
#include "base/text.h"
#include "command.h"
#include "options.h"

/* The names of all heads, in the order of the specs. */
typedef struct report_names {
    int count;
    struct report_name {
        const char *spec;
        char head[HEAD_MAX_NAME + 1];
    } * name;
} report_names;

/* The state of the command. */
typedef struct report_job {
    const report_options *options;
    report_sources sources;
    report_names names;
    FILE *index; /* NULL: one page, without an index */
    int code;    /* EXIT_REFUSED if a kernel of a page was refused */
} report_job;

static fpa_status add_names(const char *spec, const report_options *options, report_names *names,
                            fpa_error *error)
{
    fpa_head_list list = {0};
    int first, end;
    fpa_status status = select_heads(spec, options->head, options->dtype, &list, &first, &end, error);
    if (status)
        return status;
    const size_t wanted = (size_t)(names->count + end - first);
    struct report_name *name = realloc(names->name, wanted * sizeof *name);
    if (!name)
        status = fail_memory(error);
    else
        names->name = name;
    for (int i = first; i < end && !status; i++) {
        name[names->count].spec = spec;
        snprintf(name[names->count++].head, sizeof name->head, "%s", list.heads[i]->name);
    }
    head_list_free(&list);
    return status;
}

/* Checks that the names of all heads differ, also between specs, since pages are files of one folder. */
static fpa_status check_names(const report_names *names, fpa_error *error)
{
    for (int i = 0; i < names->count; i++) {
        for (int j = 0; j < i; j++) {
            if (!strcmp(names->name[i].head, names->name[j].head))
                return fail(error, FPA_INVALID, names->name[i].spec,
                            "has a head %s, and so has %s: give each a folder", names->name[i].head,
                            names->name[j].spec);
        }
    }
    return FPA_OK;
}

/* Whether the output is one page: a file's name, or something that exists and is no folder, such as /dev/stdout. */
static bool is_page(const char *path)
{
    const size_t length = strlen(path);
    struct stat facts;
    if (length > 5 && !strcmp(path + length - 5, ".html"))
        return true;
    return stat(path, &facts) == 0 && !S_ISDIR(facts.st_mode);
}

static fpa_status write_text(const char *path, char *text, fpa_error *error)
{
    if (!text)
        return fail_memory(error);
    const fpa_bytes part = {text, strlen(text)};
    fpa_status status = output_write(path, 0666, &part, 1, error);
    free(text);
    return status;
}

/* Writes the page to the file; p->out is valid only meanwhile. */
static fpa_status write_page(page *p, const char *path, fpa_error *error)
{
    text_buffer buffer;
    p->out = text_open(&buffer);
    if (!p->out)
        return fail_memory(error);
    fpa_status status = page_write(p, error);
    char *text = text_finish(&buffer);
    if (!status)
        return write_text(path, text, error);
    free(text);
    return status;
}

/* Finds facts that do not depend on the machine, such as D and the state's size, from a plan if there is one. */
static fpa_status find_facts(page *p, fpa_error *error)
{
    for (int i = 0; i < PAGE_MACHINES; i++) {
        if (!p->machine[i].planned)
            continue;
        p->facts = p->machine[i].plan.facts;
        p->simple = &p->machine[i].simple;
        return FPA_OK;
    }
    *error = p->machine[PAGE_CPU].unplanned;
    return error->code;
}

static fpa_status make_page(report_job *job, const struct report_name *name, const char *path,
                            fpa_error *error)
{
    fpa_head_list loaded[PAGE_MACHINES] = {{0}};
    page *p = calloc(1, sizeof *p);
    fpa_status status = p ? FPA_OK : fail_memory(error);
    if (!p)
        return status;
    for (int i = 0; i < PAGE_MACHINES && !status; i++)
        status =
            report_machine_make(&job->sources, i, name->spec, name->head, &loaded[i], &p->machine[i], error);
    if (!status)
        status = find_facts(p, error);
    p->head = p->machine[PAGE_CPU].head;
    if (!status)
        status = write_page(p, path, error);
    if (!status)
        detail("%s: the page of %s", path, name->head);
    if (!status && job->index) {
        p->out = job->index;
        index_add(p);
    }
    for (int i = 0; i < PAGE_MACHINES; i++) {
        if (p->machine[i].proof == PROOF_REFUSED)
            job->code = EXIT_REFUSED;
        report_machine_free(&loaded[i], &p->machine[i]);
    }
    free(p);
    return status;
}

/* ---- a folder ---- */

static fpa_status make_page_in(report_job *job, int index, fpa_error *error)
{
    const struct report_name *name = &job->names.name[index];
    char file[HEAD_MAX_NAME + 8];
    const bool first = index == 0 || strcmp(name->spec, name[-1].spec) != 0;
    snprintf(file, sizeof file, "%s.html", name->head);
    char *path = file_path(job->options->output, file);
    if (!path)
        return fail_memory(error);
    if (first)
        index_add_spec(job->index, name->spec, index == 0);
    progress("%d of %d: %s", index + 1, job->names.count, name->head);
    fpa_status status = make_page(job, name, path, error);
    free(path);
    return status;
}

static fpa_status make_pages(report_job *job, fpa_error *error)
{
    text_buffer buffer;
    fpa_status status = check_names(&job->names, error);
    if (!status && !folder_create(job->options->output, 0777))
        status = fail(error, FPA_IO, job->options->output, "cannot be made: %s", strerror(errno));
    if (status)
        return status;
    job->index = text_open(&buffer);
    if (!job->index)
        return fail_memory(error);
    index_begin(job->index);
    for (int i = 0; i < job->names.count && !status; i++)
        status = make_page_in(job, i, error);
    progress_end();
    index_end(job->index);
    char *text = text_finish(&buffer), *path = file_path(job->options->output, "index.html");
    if (!status && path)
        status = write_text(path, text, error);
    else
        free(text);
    if (!path && !status)
        status = fail_memory(error);
    free(path);
    return status;
}

/* ---- the command ---- */

static fpa_status make_one(report_job *job, const char *spec, fpa_error *error)
{
    if (job->names.count != 1)
        return fail(error, FPA_INVALID, spec,
                    "%d heads are to be shown, but -o names one page: choose one by --head, or name a folder",
                    job->names.count);
    progress("making the page of %s", job->names.name[0].head);
    fpa_status status = make_page(job, &job->names.name[0], job->options->output, error);
    progress_end();
    return status;
}

static fpa_status check_output(const fpa_texts *specs, const report_options *options, fpa_error *error)
{
    for (int i = 0; i < specs->count; i++) {
        if (output_is_same(options->output, specs->text[i]))
            return fail(error, FPA_INVALID, options->output, "is also read: -o would overwrite it");
    }
    for (int i = 0; i < PAGE_MACHINES; i++) {
        if (options->measured[i] && output_is_same(options->output, options->measured[i]))
            return fail(error, FPA_INVALID, options->output, "is also read: -o would overwrite it");
    }
    return FPA_OK;
}

static fpa_status run_job(report_job *job, const fpa_texts *specs, fpa_error *error)
{
    fpa_status status = check_output(specs, job->options, error);
    if (!status)
        status = report_sources_open(job->options, &job->sources, error);
    for (int i = 0; i < specs->count && !status; i++)
        status = add_names(specs->text[i], job->options, &job->names, error);
    if (!status)
        status =
            is_page(job->options->output) ? make_one(job, specs->text[0], error) : make_pages(job, error);
    report_sources_free(&job->sources);
    free(job->names.name);
    return status;
}

int command_report(int count, char **arguments)
{
    report_options options = {0};
    const fpa_option table[] = {
        {"-o", OPTION_TEXT, &options.output, "FILE.html|DIR", "the page; or a folder of pages, with an index",
         0, 0},
        {"--head", OPTION_TEXT, &options.head, "NAME", "only this head of each file", 0, 0},
        {"--target", OPTION_TEXT, &options.target, "TARGET",
         "of the CPU's kernels: c[:ISA] (c: the best here)", 0, 0},
        {"--dtype", OPTION_TEXT, &options.dtype, "DTYPE", dtype_help, 0, 0},
        {"--verify", OPTION_FLAG, &options.verify, NULL, "compile and verify the kernels, show their errors",
         0, 0},
        {"--measure", OPTION_FLAG, &options.measure, NULL, "also time them, beside the predictions", 0, 0},
        {"--measured", OPTION_TEXT, &options.measured[PAGE_CPU], "FILE",
         "output of fpac bench --tsv on a CPU", 0, 0},
        {"--measured-gpu", OPTION_TEXT, &options.measured[PAGE_GPU], "FILE", "the same on a GPU", 0, 0},
        OPTION_VERBOSE,
    };
    const fpa_syntax syntax = {
        "report SPEC... -o FILE.html|DIR [--head NAME] [--target TARGET] [--dtype DTYPE] [--verify] "
        "[--measure] [--measured FILE] [--measured-gpu FILE] [--verbose]",
        "Write one page of HTML about a head: its formula, its terms as pictures, what they simplify to,\n"
        "the rows of its state, cost and crossover on a CPU and on an H200, the kernels and their limits,\n"
        "and the verdict of verification. The page needs no script and no network.",
        OPTION_TABLE(table),
        1,
        -1,
        "The same heads give the same bytes on the same machine, unless they are measured. --verify and\n"
        "--measure include the GPU, if there is one that runs the kernels. GPU kernels of heads that store\n"
        "f32 are shown for bf16. Of measured lines those are drawn that have the chart's size: one sequence\n"
        "and one head on a CPU, 16 heads and 65,536 tokens in all on a GPU."};
    fpa_texts operands;
    fpa_error error;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    if (!options.output)
        return option_missing(&syntax, "-o");
    /* as in the model; OpenMP reads it when the first kernel is loaded */
    if (options.measure)
        setenv("OMP_NUM_THREADS", "1", 1);
    report_job job = {.options = &options, .code = EXIT_OK};
    if (run_job(&job, &operands, &error))
        return report(&error);
    return finish_output(job.code);
}
