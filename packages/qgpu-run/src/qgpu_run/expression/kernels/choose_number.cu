// Where a condition holds the second number, else the third (0); or a number kept in a range (1).
extern "C" __global__ void choose_number(
    const int* a, const int* b, const int* c, int* d, int operation, int step_a, int step_b,
    int step_c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int x = a[i * step_a];
    int y = b[i * step_b];
    int z = c[i * step_c];
    d[i] = operation == 0 ? (x != 0 ? y : z) : min(max(x, y), z);
}
