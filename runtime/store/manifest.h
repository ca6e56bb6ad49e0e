/* manifest: the list of a bundle's contents, as text (manifest.fpa).
 *
 *     fpac-bundle 10
 *     entries 1
 *     entry tspow2_d64_b8 c:avx512      a head for a target
 *     arithmetic f32                    its facts, one a line, in a fixed order
 *     features 2112
 *     ...
 *     head tspow2_d64_b8.head SHA256    its files, each with its digest; code is always there, the ones after it
 *     code tspow2_d64_b8.c SHA256       may be missing
 *     header tspow2_d64_b8.h SHA256
 *     object tspow2_d64_b8.avx512.so SHA256
 *     backward tspow2_d64_b8 c:avx512   with gradients: the facts and files of their own kernels
 *     arithmetic f32
 *     ...
 *     backward_code tspow2_d64_b8.backward.c SHA256
 *     ...
 *     end
 *     layers 1
 *     layer hybrid 2                    heads side by side: the number of parts, each with a head and its number of
 *     part tspow2_d64_b8 8              key/value heads
 *     part gated 4
 *     end
 *     sha256 SHA256                     of the lines before it */
#ifndef FPAC_RUNTIME_STORE_MANIFEST_H
#define FPAC_RUNTIME_STORE_MANIFEST_H

#include "abi/source.h"
#include "head/layer.h"

#define MANIFEST_NAME "manifest.fpa"

/* Files of an entry. MANIFEST_HEAD: the canonical text of the head as written, against which the kernel is
 * verified. */
typedef enum manifest_file {
    MANIFEST_HEAD,
    MANIFEST_CODE,
    MANIFEST_HEADER,
    MANIFEST_OBJECT,
    MANIFEST_PTX, /* CUDA targets: PTX for people, which fpac does not read */
    MANIFEST_BACKWARD_CODE,
    MANIFEST_BACKWARD_HEADER,
    MANIFEST_BACKWARD_OBJECT,
    MANIFEST_BACKWARD_PTX,
    MANIFEST_FILES
} manifest_file;

typedef struct fpa_bundle_file {
    char name[HEAD_MAX_NAME + 32]; /* file name in the bundle's folder; empty: there is no such file */
    char digest[DIGEST_TEXT];      /* SHA-256 of its bytes, as sha256sum prints it */
} fpa_bundle_file;

typedef struct fpa_bundle_entry {
    fpa_facts facts;
    bool backward; /* it has gradients, a module of their own */
    fpa_facts backward_facts;
    fpa_bundle_file files[MANIFEST_FILES];
} fpa_bundle_entry;

/* A part of a layer: `heads` key/value heads with the same kernel. */
typedef struct fpa_bundle_part {
    char head[HEAD_MAX_NAME + 1]; /* a head of at least one entry */
    int heads;
} fpa_bundle_part;

typedef struct fpa_bundle_layer {
    char name[HEAD_MAX_NAME + 1]; /* no entry and no other layer has this name */
    int part_count;
    fpa_bundle_part parts[LAYER_MAX_PARTS]; /* in the order of the heads' axis */
} fpa_bundle_layer;

typedef struct fpa_manifest {
    int count;
    fpa_bundle_entry *entries; /* malloc'ed */
    int layer_count;
    fpa_bundle_layer *layers; /* malloc'ed */
} fpa_manifest;

/* manifest_print returns malloc'ed text, or NULL: no memory. manifest_parse reads it, and refuses any other text
 * with the line's number; `where` names the file in messages. */
char *manifest_print(const fpa_manifest *manifest);
fpa_status manifest_parse(const char *where, const char *text, size_t size, fpa_manifest *manifest,
                          fpa_error *error);
void manifest_free(fpa_manifest *manifest);

bool manifest_has_head(const fpa_manifest *manifest, const char *name);
/* The layer of that name; NULL: there is none. */
const fpa_bundle_layer *manifest_find_layer(const fpa_manifest *manifest, const char *name);

/* facts_print: the part of an entry before its files, which the cache stores, too; malloc'ed text, or NULL.
 * facts_parse reads it; *rest is the text after it. */
char *facts_print(const fpa_facts *facts);
fpa_status facts_parse(const char *where, const char *text, fpa_facts *facts, const char **rest,
                       fpa_error *error);

/* SHA-256 of bytes, in hexadecimal. */
void manifest_digest(const void *bytes, size_t size, char digest[DIGEST_TEXT]);

#endif
