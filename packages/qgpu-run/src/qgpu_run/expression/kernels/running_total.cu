// Running sums (0) or products (1) of numbers, all of which must fit 32 bits.
extern "C" __global__ void running_total(const int* x, int* y, int* error, int operation, int n)
{
    int total = operation;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) {
        int v = x[i];
        int r = operation == 0 ? (unsigned)total + v : (unsigned)total * v;
        bool overflow = operation == 0 ? ((total ^ r) & (v ^ r)) < 0 : __mulhi(total, v) != r >> 31;
        if (overflow)
            *error = 1;
        y[i] = r;
        total = r;
    }
}
