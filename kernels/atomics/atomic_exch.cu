// Exchange: put a new value in, get the old one out, in one step. One thread per slot.
extern "C" __global__ void atomic_exch(int* slots, const int* fresh, int* old)
{
    int i = threadIdx.x;
    old[i] = atomicExch(&slots[i], fresh[i]);
}
