// __byte_perm picks four bytes out of eight; the selector may be a constant or a variable.
extern "C" __global__ void byte_perm(const unsigned* a, const unsigned* b, unsigned* swapped, unsigned* mixed, unsigned selector, unsigned* chosen)
{
    int i = threadIdx.x;
    swapped[i] = __byte_perm(a[i], 0, 0x0123);
    mixed[i] = __byte_perm(a[i], b[i], 0x5410);
    chosen[i] = __byte_perm(a[i], b[i], selector);
}
