// The low 64 bits of a 64-bit product, and the full product of two 32-bit numbers.
extern "C" __global__ void mul64(const long long* a, const long long* b, long long* product, long long* wide)
{
    int i = threadIdx.x;
    product[i] = (unsigned long long)a[i] * (unsigned long long)b[i];
    wide[i] = (long long)(int)a[i] * (int)b[i];
}
