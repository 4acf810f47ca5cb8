// Minus, absolute value, not (true for zero), number of set bits, or sign of each number.
extern "C" __global__ void change_number(const int* x, int* y, int* error, int operation, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i];
    int r;
    bool overflow = false;
    if (operation == 0) {
        r = 0u - v;
        overflow = (v & r) < 0;
    } else if (operation == 1) {
        r = v < 0 ? 0u - v : v;
        overflow = r < 0;
    } else if (operation == 2) {
        r = v == 0;
    } else if (operation == 3) {
        r = __popc(v);
    } else {
        r = (v > 0) - (v < 0);
    }
    y[i] = r;
    if (overflow)
        *error = 1;
}
