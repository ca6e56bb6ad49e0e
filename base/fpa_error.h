/* fpa_error: how every function of fpac reports a failure.
 *
 * A function that can fail returns an fpa_status and, if error is not NULL, fills *error. The error names the
 * place (a spec's file and line, a tensor, a cache entry) and the remedy, in one line that can be shown to a
 * person as it is. */
#ifndef FPA_ERROR_H
#define FPA_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fpa_status {
    FPA_OK = 0,
    FPA_INVALID,     /* the caller's input is wrong: a spec, a tensor, an option */
    FPA_UNSUPPORTED, /* a valid request that this build, form or target cannot serve */
    FPA_NO_MEMORY,   /* an allocation failed; nothing was changed */
    FPA_IO,          /* a file could not be read, written or renamed */
    FPA_COMPILE,     /* the compiler is missing, failed or ran past its time */
    FPA_LOAD,        /* a compiled module is damaged or could not be loaded */
    FPA_REFUSED,     /* verification has compared the kernel with the formula and found it wrong */
    FPA_DEVICE,      /* the GPU, its driver or its libraries are missing, or a call to them failed */
} fpa_status;

typedef struct fpa_error {
    fpa_status code;
    char where[256];    /* file:line, tensor name, cache entry ...; may be empty */
    char message[1024]; /* what is wrong and how to mend it, without a newline */
} fpa_error;

/* A short word for a status ("invalid", "refused"), a constant string. */
__attribute__((visibility("default"))) const char *fpa_status_name(fpa_status status);

#ifdef __cplusplus
}
#endif

#endif
