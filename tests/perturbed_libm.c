/* Elementary functions that are off by one unit in the last place, for LD_PRELOAD.
 *
 * PERTURBED_LIBM = up, down or mixed (up or down by the bits of the result). Python, NumPy (with its
 * vectorized loops switched off), SciPy and compiled kernels take these in place of the C library's.
 * Results that are exact stay so, as in any library that is good to an ulp.
 * test_perturbed_libm.py says how to use it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int mode; /* 1 up, -1 down, 0 mixed, 2 as it is */

__attribute__((constructor)) static void choose(void) {
    const char *name = getenv("PERTURBED_LIBM");
    mode = name == NULL ? 2 : strcmp(name, "up") == 0 ? 1 : strcmp(name, "down") == 0 ? -1 : 0;
}

static double perturbed(double value, long double precise) {
    uint64_t bits, mixture;
    if (mode == 2 || !isfinite(value) || value == 0.0 || precise == (long double)value)
        return value;
    memcpy(&bits, &value, sizeof bits);
    mixture = bits * 0x9E3779B97F4A7C15u;
    int up = mode == 0 ? (int)(mixture >> 63) : mode == 1;
    bits += up == (value > 0.0) ? 1 : -1; /* as nextafter does, which would set errno */
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* The library's own call comes last, since Python reads what it leaves in errno. */
#define PERTURBED(name, pointer, arguments, widened)                \
    static double(*real) pointer;                                   \
    if (real == NULL) real = dlsym(RTLD_NEXT, #name);               \
    int before = errno;                                             \
    long double precise = name##l widened;                          \
    errno = before;                                                 \
    return perturbed(real arguments, precise);

#define ONE(name) \
    double name(double x) { PERTURBED(name, (double), (x), (x)) }

ONE(exp) ONE(exp2) ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p) ONE(lgamma)

double pow(double x, double y) { PERTURBED(pow, (double, double), (x, y), (x, y)) }
