// Running sums (0) or products (1) of numbers, all of which must fit 32 bits.
extern "C" __global__ void running_total(const int* x, int* y, int* error, int operation, int n)
{
    int total = operation;
    unsigned k = 0;
    #pragma unroll 1
    do {
        int v = *(const int*)((const char*)x + k);
        int r = operation == 0 ? (unsigned)total + v : (unsigned)total * v;
        bool overflow = operation == 0 ? ((total ^ r) & (v ^ r)) < 0 : __mulhi(total, v) != r >> 31;
        if (overflow)
            *error = 1;
        *(int*)((char*)y + k) = r;
        total = r;
        k += 4;
    } while (k < 4 * n);
}
