// atomicInc counts 0..9 and starts again; atomicDec counts down and restarts at 6.
// The old values of the first are tallied, which does not depend on the order.
extern "C" __global__ void atomic_inc_dec(unsigned* up, unsigned* down, unsigned* seen)
{
    unsigned old = atomicInc(up, 9u);
    atomicAdd(&seen[old], 1u);
    atomicDec(down, 6u);
}
