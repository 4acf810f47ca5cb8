// The upper 32 bits of a 64-bit product, for signed and unsigned factors.
extern "C" __global__ void mulhi(const int* a, const int* b, int* s, unsigned* u)
{
    int i = threadIdx.x;
    s[i] = __mulhi(a[i], b[i]);
    u[i] = __umulhi(a[i], b[i]);
}
