#include "candidates.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "machine/cuda_mechanism.h"

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static const char *split_text(char text[CANDIDATE_TEXT], const fpa_candidate *candidate)
{
    const char *kernel = candidate->variant & SPLIT_SMALL ? "chunk_state_small" : "chunk_state";
    if (candidate->refused)
        snprintf(text, CANDIDATE_TEXT, "%s%s", kernel,
                 candidate->variant & SPLIT_OVERLAPPED ? ", overlapped" : "");
    else if (candidate->variant & SPLIT_OVERLAPPED)
        snprintf(text, CANDIDATE_TEXT, "%s, overlapped, %" PRId64 " blocks", kernel, candidate->blocks);
    else
        snprintf(text, CANDIDATE_TEXT, "%s, %" PRId64 " segment%s", kernel, candidate->segments,
                 plural(candidate->segments));
    return text;
}

static const char *shared_text(char text[CANDIDATE_TEXT], const fpa_candidate *candidate)
{
    const int64_t clusters = candidate->blocks / candidate->segments;
    snprintf(text, CANDIDATE_TEXT, "%" PRId64 " cluster%s of %" PRId64 ", %s", clusters, plural(clusters),
             candidate->segments, candidate->variant & SCAN_WHOLE ? "whole sequences" : "shared spans");
    return text;
}

const char *candidate_text(char text[CANDIDATE_TEXT], const fpa_candidate *candidate)
{
    static const char *const units[MECHANISMS] = {[MECHANISM_FUSED_CHUNK] = "segment",
                                                  [MECHANISM_CLUSTER_SCAN] = "block a cluster",
                                                  [MECHANISM_DECODE] = "block a head",
                                                  [MECHANISM_DECODE_RESIDENT] = "block a head",
                                                  [MECHANISM_DECODE_RECENT] = "block a head"};
    const cuda_mechanism mechanism = cuda_mechanism_of(candidate);
    *text = '\0';
    if (mechanism == MECHANISM_SPLIT)
        return split_text(text, candidate);
    if (mechanism == MECHANISMS || candidate->refused)
        return text;
    if (mechanism == MECHANISM_CLUSTER_SCAN && candidate->variant & (SCAN_SHARED | SCAN_WHOLE))
        return shared_text(text, candidate);
    const bool ahead = mechanism == MECHANISM_FUSED_CHUNK && candidate->variant & FUSED_AHEAD;
    const char *unit = units[mechanism], *rest = strchr(unit, ' ');
    const int word = rest ? (int)(rest - unit) : (int)strlen(unit);
    snprintf(text, CANDIDATE_TEXT, "%" PRId64 " %.*s%s%s%s", candidate->segments, word, unit,
             plural(candidate->segments), rest ? rest : "", ahead ? ", the first ahead" : "");
    return text;
}

double candidate_nanoseconds(const fpa_call_size *size, double seconds)
{
    const int64_t heads = size->query_heads > size->heads ? size->query_heads : size->heads;
    return 1e9 * seconds / ((double)size->batch * (double)heads * (double)size->length);
}

static void print_candidate(const fpa_call_size *size, const fpa_candidate *candidate, bool fastest)
{
    char text[CANDIDATE_TEXT];
    printf("%c %-16s %-36s ", fastest ? '*' : ' ', candidate->mechanism, candidate_text(text, candidate));
    if (candidate->refused)
        printf("%s\n", candidate->refused);
    else
        printf("%12.2f us %10.4f ns  %s\n", 1e6 * candidate->cost.seconds,
               candidate_nanoseconds(size, candidate->cost.seconds), candidate->cost.limit);
}

void candidates_print(const fpa_call_size *size, const fpa_candidate *list, int count, int fastest)
{
    printf("  %-16s %-36s %15s %13s  %s\n", "mechanism", "", "a call", "a token, head", "limited by");
    for (int i = 0; i < count; i++)
        print_candidate(size, &list[i], i == fastest);
}

static void write_candidate(fpa_json *json, const fpa_call_size *size, const fpa_candidate *candidate,
                            bool fastest)
{
    json_object(json, NULL);
    json_text(json, "mechanism", candidate->mechanism);
    json_integer(json, "variant", candidate->variant);
    if (candidate->refused) {
        json_text(json, "refused", candidate->refused);
        json_close(json);
        return;
    }
    json_integer(json, "segments", candidate->segments);
    if (candidate->blocks)
        json_integer(json, "blocks", candidate->blocks);
    json_number(json, "seconds", candidate->cost.seconds);
    json_number(json, "ns_per_token_and_head", candidate_nanoseconds(size, candidate->cost.seconds));
    json_text(json, "limit", candidate->cost.limit);
    json_bool(json, "fastest", fastest);
    json_close(json);
}

void candidates_write(fpa_json *json, const fpa_call_size *size, const fpa_candidate *list, int count,
                      int fastest)
{
    json_array(json, "candidates");
    for (int i = 0; i < count; i++)
        write_candidate(json, size, &list[i], i == fastest);
    json_close(json);
}
