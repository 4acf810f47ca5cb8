// Thread t runs t steps of the Fibonacci recurrence.
extern "C" __global__ void fibonacci(unsigned* f)
{
    unsigned a = 0;
    unsigned b = 1;
    #pragma unroll 1
    for (int i = 0; i < threadIdx.x; ++i) {
        unsigned next = a + b;
        a = b;
        b = next;
    }
    f[threadIdx.x] = a;
}
