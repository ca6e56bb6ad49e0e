/* .npy files: what is read, what is refused and how, and that writing is whole or not at all. */
#include "base/npy.h"
#include "claims.h"
#include "scratch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], path[128];

static int make_folder(void **state)
{
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/x.npy", folder);
    return 0;
}

static int remove_folder(void **state)
{
    scratch_remove(folder);
    return 0;
}

/* A file of the version with this header dictionary and these bytes behind it. */
static void write_file(int version, const char *header, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    size_t length = strlen(header) + 1;
    unsigned char start[12] = {0x93,
                               'N',
                               'U',
                               'M',
                               'P',
                               'Y',
                               (unsigned char)version,
                               0,
                               (unsigned char)(length & 255),
                               (unsigned char)(length >> 8)};
    assert_non_null(file);
    fwrite(start, 1, version == 1 ? 10 : 12, file);
    fprintf(file, "%s\n", header);
    if (size)
        fwrite(bytes, 1, size, file);
    fclose(file);
}

static void what_is_written_is_read_back(void **state)
{
    static const struct {
        int axes;
        int64_t shape[NPY_MAX_AXES];
    } cases[] = {{0, {0}},          {1, {5}},       {2, {2, 3}},
                 {4, {2, 3, 1, 4}}, {3, {2, 0, 3}}, {8, {1, 2, 1, 2, 1, 2, 1, 2}}};
    fpa_error error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float data[24];
        fpa_array written = {.axes = cases[i].axes, .count = 1, .data = data}, read;
        for (int a = 0; a < written.axes; a++)
            written.count *= written.shape[a] = cases[i].shape[a];
        for (int j = 0; j < written.count; j++)
            data[j] = (float)j / 3;
        assert_int_equal(npy_write(path, &written, &error), FPA_OK);
        assert_int_equal(npy_read(path, &read, &error), FPA_OK);
        assert_int_equal(read.axes, written.axes);
        assert_int_equal(read.count, written.count);
        assert_memory_equal(read.shape, written.shape, sizeof read.shape);
        if (read.count)
            assert_memory_equal(read.data, data, (size_t)read.count * sizeof *data);
        npy_free(&read);
    }
    assert_int_equal(scratch_count(folder, NULL), 1);
}

static void the_data_begin_at_a_multiple_of_64(void **state)
{
    float one = 1;
    fpa_array array = {.axes = 1, .shape = {1}, .count = 1, .data = &one};
    unsigned char bytes[256];
    fpa_error error;
    assert_int_equal(npy_write(path, &array, &error), FPA_OK);
    FILE *file = fopen(path, "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_int_equal((size - sizeof one) % 64, 0);
    assert_int_equal(bytes[size - sizeof one - 1], '\n');
}

static void every_version_and_both_types_are_read(void **state)
{
    const float narrow[] = {1.5f, -2};
    const double wide[] = {1.5, -2};
    fpa_array array;
    fpa_error error;
    for (int version = 1; version <= 3; version++) {
        write_file(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", narrow,
                   sizeof narrow);
        assert_int_equal(npy_read(path, &array, &error), FPA_OK);
        assert_memory_equal(array.data, narrow, sizeof narrow);
        npy_free(&array);
        write_file(version, "{'shape': (1, 2), 'fortran_order': False, 'descr': '<f8'}", wide, sizeof wide);
        assert_int_equal(npy_read(path, &array, &error), FPA_OK);
        assert_int_equal(array.axes, 2);
        assert_memory_equal(array.data, narrow, sizeof narrow);
        npy_free(&array);
    }
}

/* One array of each integer type, its largest number that float32 has included. */
static void integers_are_read_where_numbers_are_asked_for(void **state)
{
    static const int8_t i1[] = {-128, 127, 3};
    static const uint8_t u1[] = {0, 255, 3};
    static const int16_t i2[] = {-32768, 32767, 3};
    static const uint16_t u2[] = {0, 65535, 3};
    static const int32_t i4[] = {INT32_MIN, 1 << 24, 3};
    static const uint32_t u4[] = {0, UINT32_C(1) << 31, 3};
    static const int64_t i8[] = {-((INT64_C(1) << 53)), INT64_C(1) << 40, 3};
    static const uint64_t u8[] = {0, UINT64_C(1) << 53, 3};
    static const float f4[] = {-1.5f, 1e30f, 3};
    static const struct {
        const char *type;
        const void *data;
        size_t item;
        float first, second;
    } kinds[] = {
        {"|i1", i1, 1, -128, 127},         {"|u1", u1, 1, 0, 255},
        {"<i2", i2, 2, -32768, 32767},     {"<u2", u2, 2, 0, 65535},
        {"<i4", i4, 4, -0x1p31f, 0x1p24f}, {"<u4", u4, 4, 0, 0x1p31f},
        {"<i8", i8, 8, -0x1p53f, 0x1p40f}, {"<u8", u8, 8, 0, 0x1p53f},
        {"<f4", f4, 4, -1.5f, 1e30f},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char header[128];
        fpa_array array;
        fpa_error error = {0};
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }",
                 kinds[i].type);
        write_file(1, header, kinds[i].data, 3 * kinds[i].item);
        if (npy_read_numbers(path, &array, &error))
            fail_msg("%s: %s", kinds[i].type, error.message);
        assert_true(array.data[0] == kinds[i].first && array.data[1] == kinds[i].second &&
                    array.data[2] == 3);
        npy_free(&array);
        if (kinds[i].type[1] == 'f')
            continue;
        assert_int_equal(npy_read(path, &array, &error), FPA_INVALID);
        assert_non_null(strstr(error.message, "but '<f2', '<f4' or '<f8' (float16, 32 or 64) is needed"));
    }
}

static void integers_that_float32_does_not_have_are_refused(void **state)
{
    static const int32_t narrow[] = {5, (1 << 24) + 1};
    static const int64_t wide[] = {5, (INT64_C(1) << 60) + 1};
    fpa_array array;
    fpa_error error = {0};
    write_file(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", narrow, sizeof narrow);
    assert_int_equal(npy_read_numbers(path, &array, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "the integer 16777217, number 2 of the array"));
    assert_null(array.data);
    write_file(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", wide, sizeof wide);
    assert_int_equal(npy_read_numbers(path, &array, &error), FPA_INVALID);
}

static void masks_are_bool_or_uint8(void **state)
{
    static const uint8_t bytes[] = {1, 0, 0, 1, 1, 255};
    static const char *const types[] = {"|b1", "|u1"};
    static const float floats[] = {1, 0};
    fpa_array array;
    fpa_error error = {0};
    for (int i = 0; i < 2; i++) {
        char header[128];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': True, 'shape': (2, 3), }",
                 types[i]);
        write_file(1, header, bytes, sizeof bytes);
        assert_int_equal(npy_read_mask(path, &array, &error), FPA_OK);
        assert_true(array.data[0] == 1 && array.data[1] == 0 && array.data[2] == 1 && array.data[3] == 0 &&
                    array.data[4] == 1 && array.data[5] == 255);
        npy_free(&array);
    }
    write_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", floats, sizeof floats);
    assert_int_equal(npy_read_mask(path, &array, &error), FPA_INVALID);
    assert_non_null(
        strstr(error.message, "has elements of type '<f4', but '|b1' or '|u1' (bool or uint8) is needed"));
    write_file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (6,), }", bytes, sizeof bytes);
    assert_int_equal(npy_read_numbers(path, &array, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "has elements of type '|b1', but"));
}

static const npy_limit small = {3, 3, 100};

static void fortran_order_is_copied(void **state)
{
    static const float columns[] = {0, 100, 10, 110, 20, 120, 1, 101, 11, 111, 21, 121};
    static const double wide[] = {0, 10, 1, 11, 2, 12};
    npy_matrices read;
    fpa_array array;
    fpa_error error;
    write_file(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 2), }", columns, sizeof columns);
    assert_int_equal(npy_read(path, &array, &error), FPA_OK);
    assert_true(array.reversed);
    for (int i = 0; i < 12; i++) /* 100 a + 10 b + c at [a][b][c] */
        assert_true(array.data[i] == (float)(i / 6 * 100 + i / 2 % 3 * 10 + i % 2));
    npy_free(&array);
    write_file(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", wide, sizeof wide);
    assert_int_equal(npy_read_matrices(path, &small, &read, &error), FPA_OK);
    for (int i = 0; i < 6; i++)
        assert_true(read.data[i] == i / 3 * 10 + i % 3);
    free(read.data);
    write_file(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 0), }", columns, 0);
    assert_int_equal(npy_read(path, &array, &error), FPA_OK);
    npy_free(&array);
}

static void float16_is_read_and_written(void **state)
{
    static const uint16_t halves[] = {0x3c00, 0xc000, 0x3555, 0x7c00, 0x0001};
    fpa_array array, again;
    fpa_error error;
    write_file(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (5,), }", halves, sizeof halves);
    assert_int_equal(npy_read(path, &array, &error), FPA_OK);
    assert_int_equal(array.item, 2);
    assert_true(array.data[0] == 1 && array.data[1] == -2 && array.data[4] == 0x1p-24f);
    assert_int_equal(npy_write(path, &array, &error), FPA_OK);
    assert_int_equal(npy_read(path, &again, &error), FPA_OK);
    assert_int_equal(again.item, 2);
    assert_memory_equal(again.data, array.data, sizeof(float) * 5);
    npy_free(&array);
    npy_free(&again);
}

static void a_matrix_has_two_axes(void **state)
{
    const double wide[] = {0.1, 2, 3, 4, 5, 6};
    const float narrow[] = {1, 2, 3, 4, 5, 6};
    npy_matrices read;
    fpa_error error;
    write_file(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", wide, sizeof wide);
    assert_int_equal(npy_read_matrices(path, &small, &read, &error), FPA_OK);
    assert_false(read.several);
    assert_int_equal(read.rows, 2);
    assert_int_equal(read.columns, 3);
    assert_memory_equal(read.data, wide, sizeof wide);
    free(read.data);
    write_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", narrow, sizeof narrow);
    assert_int_equal(npy_read_matrices(path, &small, &read, &error), FPA_OK);
    assert_int_equal(read.rows, 3);
    assert_true(read.data[5] == 6);
    free(read.data);
    write_file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", narrow, sizeof narrow);
    assert_int_equal(npy_read_matrices(path, &small, &read, &error), FPA_INVALID);
    assert_string_equal(error.message, "has 1 axes, but a matrix has 2, several of one shape have 3");
}

/* Of any kind of numbers, but integers are no tensors. */
static void specs_read_several_matrices_and_integers(void **state)
{
    const int32_t whole[] = {1, -2, 3, 2000000000, 5, 6};
    const npy_limit limit = {3, 3, 100}, narrow = {3, 2, 100}, few = {3, 3, 5};
    npy_matrices read;
    fpa_array array;
    fpa_error error;
    write_file(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1, 3), }", whole, sizeof whole);
    assert_int_equal(npy_read_matrices(path, &limit, &read, &error), FPA_OK);
    assert_true(read.several && read.count == 2 && read.rows == 1 && read.columns == 3);
    for (int i = 0; i < 6; i++)
        assert_true(read.data[i] == whole[i]);
    free(read.data);
    assert_int_equal(npy_read_matrices(path, &narrow, &read, &error), FPA_INVALID);
    assert_string_equal(error.message, "is 1 x 3, but at most 3 x 2 is allowed");
    assert_int_equal(npy_read_matrices(path, &few, &read, &error), FPA_INVALID);
    assert_int_equal(npy_read(path, &array, &error), FPA_INVALID);
    assert_string_equal(
        error.message, "has elements of type '<i4', but '<f2', '<f4' or '<f8' (float16, 32 or 64) is needed");
    write_file(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", whole, sizeof whole);
    assert_int_equal(npy_read_matrices(path, &limit, &read, &error), FPA_OK);
    assert_true(!read.several && read.count == 1 && read.rows == 2 && read.data[3] == 2e9);
    free(read.data);
    write_file(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (6,), }", whole, sizeof whole);
    assert_int_equal(npy_read_matrices(path, &limit, &read, &error), FPA_INVALID);
    assert_string_equal(error.message, "has 1 axes, but a matrix has 2, several of one shape have 3");
}

static const struct {
    int version;
    const char *header, *message;
} refused[] = {
    {1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
     "has elements of type '>f4', but '<f2', '<f4'"},
    {1, "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }",
     "has elements of type '<i8', but '<f2', '<f4'"},
    {1, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
     "has elements of type '|O', but '<f2', '<f4'"},
    {1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "has elements of type [('"},
    {1, "{'fortran_order': False, 'shape': (2,), }", "has a header without a type"},
    {1, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", "has a header without fortran_order"},
    {1, "{'descr': '<f4', 'shape': (2,), }", "has a header without fortran_order"},
    {1, "{'descr': '<f4', 'fortran_order': False, }", "has a header without a shape"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "has a shape that cannot be read"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", "has a shape that cannot be read"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,", "has a shape that cannot be read"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
     "has a shape that cannot"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
     "has a shape too large"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2), }", "has more than 8 axes"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
     "holds 8 bytes of numbers, but its shape needs 12"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",
     "holds 8 bytes of numbers, but its shape needs 4"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (500000000000,), }",
     "holds 8 bytes of numbers, but"},
    {1, "{'descr': '<f4'*2, 'fortran_order': False, 'shape': (2,), }",
     "has a header that cannot be read: *2,"},
    {1, "{'descr': '<f4x', 'fortran_order': False, 'shape': (2,), }", "has elements of type '<f4x', but"},
    {1, "{'descr': '<f4', 'fortran_order': Falsey, 'shape': (2,), }", "has a header without fortran_order"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2), }", "has a shape that cannot be read"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)*1, }", "has a header that cannot be read"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } + {}", "has a header that cannot be read"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "has a header that cannot be read"},
    {1, "{'descr': '<f4' 'fortran_order': False, 'shape': (2,), }", "has a header that cannot be read"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (2,)}",
     "has a header that cannot be read"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
     "has a header that cannot be read"},
    {1, "x{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "has a header that cannot be read: x{"},
    {1, "{'comment': \"'descr': '<f4'\", 'fortran_order': False, 'shape': (2,), }",
     "has a header that cannot be read"},
    {4, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "is of .npy version 4.0"},
};

static void a_file_that_is_not_understood_is_refused_with_the_reason(void **state)
{
    const float data[] = {1, 2};
    fpa_array array;
    fpa_error error;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        write_file(refused[i].version, refused[i].header, data, sizeof data);
        assert_int_equal(npy_read(path, &array, &error), FPA_INVALID);
        assert_ptr_equal(strstr(error.message, refused[i].message), error.message);
        assert_string_equal(error.where, path);
        assert_null(array.data);
    }
}

static void keys_come_in_any_order_and_either_quotes(void **state)
{
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{'descr':'<f4','fortran_order':False,'shape':(2,)}",
        "{\"shape\": (2,), \"fortran_order\": False, \"descr\": \"<f4\"}   ",
        "{ 'fortran_order' : False , 'shape' : ( 2 , ) , 'descr' : '<f4' , } ",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,2), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2,), }",
    };
    const float data[] = {1, 2};
    fpa_array array;
    fpa_error error;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        write_file(1, headers[i], data, sizeof data);
        assert_int_equal(npy_read(path, &array, &error), FPA_OK);
        assert_int_equal(array.count, 2);
        npy_free(&array);
    }
}

static void a_fifo_does_not_hold_us_up(void **state)
{
    fpa_array array;
    fpa_error error;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_true(npy_read(path, &array, &error) != FPA_OK);
    unlink(path);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    float data[] = {1, 2, 3};
    fpa_array array = {.axes = 1, .shape = {3}, .count = 3, .data = data}, read;
    fpa_error error;
    struct stat facts;
    assert_int_equal(npy_write(path, &array, &error), FPA_OK);
    assert_int_equal(stat(path, &facts), 0);
    for (off_t size = facts.st_size - 1; size >= 0; size--) {
        assert_int_equal(truncate(path, size), 0);
        assert_int_equal(npy_read(path, &read, &error), FPA_INVALID);
    }
}

static void a_missing_file_and_a_folder_are_refused(void **state)
{
    fpa_array array;
    fpa_error error;
    assert_int_equal(npy_read("/nowhere/x.npy", &array, &error), FPA_IO);
    assert_string_equal(error.message, "cannot be opened: No such file or directory");
    assert_true(npy_read(folder, &array, &error) != FPA_OK);
}

static void a_failed_write_leaves_nothing_behind(void **state)
{
    float one = 1;
    fpa_array array = {.axes = 1, .shape = {1}, .count = 1, .data = &one};
    char taken[128];
    fpa_error error;
    assert_int_equal(npy_write("/nowhere/x.npy", &array, &error), FPA_IO);
    snprintf(taken, sizeof taken, "%s/taken", folder);
    assert_int_equal(mkdir(taken, 0700), 0);
    int before = scratch_count(folder, NULL);
    assert_int_equal(npy_write(taken, &array, &error), FPA_IO); /* a folder is not replaced by a file */
    assert_int_equal(scratch_count(folder, NULL), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(the_data_begin_at_a_multiple_of_64),
        cmocka_unit_test(every_version_and_both_types_are_read),
        cmocka_unit_test(integers_are_read_where_numbers_are_asked_for),
        cmocka_unit_test(integers_that_float32_does_not_have_are_refused),
        cmocka_unit_test(masks_are_bool_or_uint8),
        cmocka_unit_test(fortran_order_is_copied),
        cmocka_unit_test(float16_is_read_and_written),
        cmocka_unit_test(a_matrix_has_two_axes),
        cmocka_unit_test(specs_read_several_matrices_and_integers),
        cmocka_unit_test(keys_come_in_any_order_and_either_quotes),
        cmocka_unit_test(a_fifo_does_not_hold_us_up),
        cmocka_unit_test(a_file_that_is_not_understood_is_refused_with_the_reason),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(a_missing_file_and_a_folder_are_refused),
        cmocka_unit_test(a_failed_write_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
