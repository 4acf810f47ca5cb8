// Sum, difference or product of 32-bit numbers; what does not fit 32 bits is reported.
extern "C" __global__ void checked_arithmetic(
    const int* a, const int* b, int* c, int* error, int operation, int step_a, int step_b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int x = a[i * step_a];
    int y = b[i * step_b];
    int r;
    bool overflow;
    if (operation == 0) {
        r = (unsigned)x + y;
        overflow = ((x ^ r) & (y ^ r)) < 0;
    } else if (operation == 1) {
        r = (unsigned)x - y;
        overflow = ((x ^ y) & (x ^ r)) < 0;
    } else {
        r = (unsigned)x * y;
        overflow = __mulhi(x, y) != r >> 31;
    }
    c[i] = r;
    if (overflow)
        *error = 1;
}
