/* manifest: the list of what lies in a bundle's folder, as text (manifest.fpa).
 *
 *     fpac-bundle 10
 *     entries 1
 *     entry tspow2_d64_b8 c:avx512      a head for a target
 *     arithmetic f32                    its facts, one a line, in a fixed order
 *     features 2112
 *     ...
 *     head tspow2_d64_b8.head SHA256    its files, each with its digest; those from header on only
 *     code tspow2_d64_b8.c SHA256       when they are there
 *     header tspow2_d64_b8.h SHA256
 *     object tspow2_d64_b8.avx512.so SHA256
 *     backward tspow2_d64_b8 c:avx512   with gradients: the facts of their own kernels, and the files of these
 *     arithmetic f32
 *     ...
 *     backward_code tspow2_d64_b8.backward.c SHA256
 *     ...
 *     end
 *     layers 1
 *     layer hybrid 2                    heads side by side: so many parts, each a head of the entries and how many of it
 *     part tspow2_d64_b8 8
 *     part gated 4
 *     end
 *     sha256 SHA256                     of the lines before it */
#ifndef FPAC_RUNTIME_STORE_MANIFEST_H
#define FPAC_RUNTIME_STORE_MANIFEST_H

#include "abi/source.h"
#include "head/layer.h"

#define MANIFEST_NAME "manifest.fpa"

/* head: the canonical text of the head as written, which the kernel is verified against. */
typedef enum manifest_file {
    MANIFEST_HEAD,
    MANIFEST_CODE,
    MANIFEST_HEADER,
    MANIFEST_OBJECT,
    MANIFEST_PTX, /* of CUDA targets, for people: nothing reads it */
    MANIFEST_BACKWARD_CODE,
    MANIFEST_BACKWARD_HEADER,
    MANIFEST_BACKWARD_OBJECT,
    MANIFEST_BACKWARD_PTX,
    MANIFEST_FILES
} manifest_file;

typedef struct fpa_bundle_file {
    char name[HEAD_MAX_NAME + 32]; /* in the bundle's folder; empty: there is none */
    char digest[DIGEST_TEXT];      /* SHA-256 of its bytes, as sha256sum prints it */
} fpa_bundle_file;

typedef struct fpa_bundle_entry {
    fpa_facts facts;
    bool backward; /* it has gradients, whose kernels are a module of their own */
    fpa_facts backward_facts;
    fpa_bundle_file files[MANIFEST_FILES];
} fpa_bundle_entry;

/* So many key/value heads that are alike. */
typedef struct fpa_bundle_part {
    char head[HEAD_MAX_NAME + 1]; /* of some entry at least */
    int heads;
} fpa_bundle_part;

typedef struct fpa_bundle_layer {
    char name[HEAD_MAX_NAME + 1]; /* no entry and no other layer has it */
    int part_count;
    fpa_bundle_part parts[LAYER_MAX_PARTS]; /* in the order of the heads' axis */
} fpa_bundle_layer;

typedef struct fpa_manifest {
    int count;
    fpa_bundle_entry *entries; /* malloc'ed */
    int layer_count;
    fpa_bundle_layer *layers; /* malloc'ed */
} fpa_manifest;

/* malloc'ed text, or NULL. manifest_parse reads it back and refuses anything else, with its line;
 * where names the file in messages. */
char *manifest_print(const fpa_manifest *manifest);
fpa_status manifest_parse(const char *where, const char *text, size_t size, fpa_manifest *manifest,
                          fpa_error *error);
void manifest_free(fpa_manifest *manifest);

bool manifest_has_head(const fpa_manifest *manifest, const char *name);
/* NULL: there is none. */
const fpa_bundle_layer *manifest_find_layer(const fpa_manifest *manifest, const char *name);

/* The part of an entry up to its files, which the cache keeps too: malloc'ed text, or NULL; and back. *rest:
 * what comes behind it. */
char *facts_print(const fpa_facts *facts);
fpa_status facts_parse(const char *where, const char *text, fpa_facts *facts, const char **rest,
                       fpa_error *error);

/* SHA-256 of bytes, in hexadecimal. */
void manifest_digest(const void *bytes, size_t size, char digest[DIGEST_TEXT]);

#endif
