// Comparison of two numbers; the launch says what less, equal and greater give.
extern "C" __global__ void compare_numbers(
    const int* a, const int* b, int* c, int less, int equal, int greater, int step_a, int step_b,
    int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int x = a[i * step_a];
    int y = b[i * step_b];
    c[i] = x < y ? less : x == y ? equal : greater;
}
