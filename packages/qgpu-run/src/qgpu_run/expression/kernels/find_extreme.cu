// Of rows: minimum (0), maximum (1), the first place of either (2, 3), any (4) or all (5) true.
extern "C" __global__ void find_extreme(
    const int* x, int* y, int operation, int count, int step, int next_row, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int r = x[i * next_row];
    unsigned place = 0;
    if (operation >= 4)
        r = r != 0;
    const char* row = (const char*)(x + i * next_row);
    #pragma unroll 1
    for (unsigned k = 4 * step; k < 4 * step * count; k += 4 * step) {
        int v = *(const int*)(row + k);
        if (operation == 0)
            r = min(r, v);
        else if (operation == 1)
            r = max(r, v);
        else if (operation == 4)
            r |= v != 0;
        else if (operation == 5)
            r &= v != 0;
        else if (operation == 2 ? v < r : v > r) {
            r = v;
            place = k;
        }
    }
    y[i] = operation == 2 || operation == 3 ? place / (4 * step) : r;
}
