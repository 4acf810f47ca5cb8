// Factorial (0) or Fibonacci number (1); reports negative places and results that do not fit.
extern "C" __global__ void number_sequence(
    const int* x, int* y, int* error, int operation, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int v = x[i];
    int last = operation == 0 ? 12 : 46;
    if (v < 0)
        *error = 3;
    if (v > last)
        *error = 1;
    int steps = min(v, last);
    unsigned r = operation == 0 ? 1 : 0;
    unsigned next = 1;
    #pragma unroll 1
    for (int k = 1; k <= steps; ++k) {
        if (operation == 0) {
            r *= k;
        } else {
            unsigned sum = r + next;
            r = next;
            next = sum;
        }
    }
    y[i] = r;
}
