// Four running bounds; the same bits order differently as signed and as unsigned numbers.
extern "C" __global__ void atomic_min_max(const int* x, int* bounds, unsigned* ubounds)
{
    int v = x[threadIdx.x];
    atomicMin(&bounds[0], v);
    atomicMax(&bounds[1], v);
    atomicMin(&ubounds[0], (unsigned)v);
    atomicMax(&ubounds[1], (unsigned)v);
}
