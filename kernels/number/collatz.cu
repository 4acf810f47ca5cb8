// Collatz: halve even numbers, triple odd ones and add one; threads take different times.
extern "C" __global__ void collatz(const unsigned* x, int* steps)
{
    unsigned v = x[threadIdx.x];
    int n = 0;
    #pragma unroll 1
    while (v != 1) {
        v = (v & 1) ? 3 * v + 1 : v >> 1;
        ++n;
    }
    steps[threadIdx.x] = n;
}
