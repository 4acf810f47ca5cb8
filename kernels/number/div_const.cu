// Division by a constant never divides: the compiler multiplies by a reciprocal and shifts.
extern "C" __global__ void div_const(const int* a, int* by7, int* mod10, int* by16, unsigned* umod1000)
{
    int i = threadIdx.x;
    int v = a[i];
    by7[i] = v / 7;
    mod10[i] = v % 10;
    by16[i] = v / 16;
    umod1000[i] = (unsigned)v % 1000u;
}
