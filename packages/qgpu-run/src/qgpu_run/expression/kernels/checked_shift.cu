// Shift left, which must not lose bits, or arithmetic shift right; counts are 0 to 31.
extern "C" __global__ void checked_shift(
    const int* a, const int* b, int* c, int* error, int right, int step_a, int step_b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int x = a[i * step_a];
    int y = b[i * step_b];
    int r = right ? x >> (y & 31) : x << (y & 31);
    c[i] = r;
    if ((unsigned)y > 31)
        *error = 4;
    else if (!right && r >> (y & 31) != x)
        *error = 1;
}
