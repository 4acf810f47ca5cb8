// Minimum, maximum, and, or of two numbers (any but zero is true), or their bits' and, or, xor.
extern "C" __global__ void combine_numbers(
    const int* a, const int* b, int* c, int operation, int step_a, int step_b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int x = a[i * step_a];
    int y = b[i * step_b];
    int r;
    if (operation == 0)
        r = min(x, y);
    else if (operation == 1)
        r = max(x, y);
    else if (operation == 2)
        r = x != 0 && y != 0;
    else if (operation == 3)
        r = (x | y) != 0;
    else if (operation == 4)
        r = x & y;
    else if (operation == 5)
        r = x | y;
    else
        r = x ^ y;
    c[i] = r;
}
