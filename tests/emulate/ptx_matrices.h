/* ptx_matrices: blocks of 8 x 8 numbers of 16 bits between shared memory and the registers of a warp; part of
 * ptx.h. */
#ifndef FPAC_TESTS_PTX_MATRICES_H
#define FPAC_TESTS_PTX_MATRICES_H

namespace emulate
{

/* Lane 4g + t gets of each matrix row g, columns 2t and 2t + 1; transposed: rows 2t and 2t + 1 of column g.
 */
template <size_t size>
static void load_matrices(const char *what, words<size> d, u32 address, bool transposed)
{
    struct lane {
        words<size> d;
        u32 address;
    } own = {d, address};
    group &g = own_warp().lanes;
    if (current % WARP < (int)size * 8) {
        at(address, 16);
        note_read(address, 16);
    }
    meet(g, what, current % WARP, &own, [&g, transposed] {
        const u16 *rows[size * 8];
        for (size_t row = 0; row < size * 8; row++)
            rows[row] = (const u16 *)at(((lane *)g.argument[row])->address, 16);
        for (int i = 0; i < WARP; i++) {
            const int a = i / 4, b = i % 4 * 2;
            const lane *to = (const lane *)g.argument[i];
            for (size_t matrix = 0; matrix < size; matrix++) {
                const u16 *const *x = rows + matrix * 8;
                *to->d[matrix] = transposed ? both(x[b][a], x[b + 1][a]) : both(x[a][b], x[a][b + 1]);
            }
        }
    });
}

/* The other way round. */
template <size_t size>
static void store_matrices(const char *what, u32 address, given_words<size> a, bool transposed)
{
    struct lane {
        given_words<size> a;
        u32 address;
    } own = {a, address};
    group &g = own_warp().lanes;
    if (current % WARP < (int)size * 8) {
        at(address, 16);
        note_write(address, 16, false);
    }
    meet(g, what, current % WARP, &own, [&g, transposed] {
        for (size_t i = 0; i < size * 8 * 4; i++) { /* words: of each row four lanes' */
            const size_t matrix = i / 32, row = i / 4 % 8, column = i % 4 * 2; /* in registers */
            const u16 *pair = (const u16 *)((lane *)g.argument[i % 32])->a[matrix];
            for (int e = 0; e < 2; e++) {
                const size_t r = transposed ? column + e : row, c = transposed ? row : column + e;
                memcpy(at(((lane *)g.argument[matrix * 8 + r])->address, 16) + c * 2, pair + e, 2);
            }
        }
    });
}

} // namespace emulate

RUNTIME void ptx_stmatrix_sync_aligned_m8n8_x4_shared_b16(emulate::u32 address, emulate::given_words<4> a)
{
    emulate::store_matrices("stmatrix.x4", address, a, false);
}

RUNTIME void ptx_stmatrix_sync_aligned_m8n8_x2_shared_b16(emulate::u32 address, emulate::given_words<2> a)
{
    emulate::store_matrices("stmatrix.x2", address, a, false);
}

RUNTIME void ptx_stmatrix_sync_aligned_m8n8_x4_trans_shared_b16(emulate::u32 address,
                                                                emulate::given_words<4> a)
{
    emulate::store_matrices("stmatrix.x4.trans", address, a, true);
}

RUNTIME void ptx_stmatrix_sync_aligned_m8n8_x2_trans_shared_b16(emulate::u32 address,
                                                                emulate::given_words<2> a)
{
    emulate::store_matrices("stmatrix.x2.trans", address, a, true);
}

RUNTIME void ptx_ldmatrix_sync_aligned_m8n8_x4_shared_b16(emulate::words<4> d, emulate::u32 address)
{
    emulate::load_matrices("ldmatrix.x4", d, address, false);
}

RUNTIME void ptx_ldmatrix_sync_aligned_m8n8_x1_shared_b16(emulate::words<1> d, emulate::u32 address)
{
    emulate::load_matrices("ldmatrix.x1", d, address, false);
}

RUNTIME void ptx_ldmatrix_sync_aligned_m8n8_x2_shared_b16(emulate::words<2> d, emulate::u32 address)
{
    emulate::load_matrices("ldmatrix.x2", d, address, false);
}

RUNTIME void ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(emulate::words<4> d, emulate::u32 address)
{
    emulate::load_matrices("ldmatrix.x4.trans", d, address, true);
}

RUNTIME void ptx_ldmatrix_sync_aligned_m8n8_x2_trans_shared_b16(emulate::words<2> d, emulate::u32 address)
{
    emulate::load_matrices("ldmatrix.x2.trans", d, address, true);
}

#endif
