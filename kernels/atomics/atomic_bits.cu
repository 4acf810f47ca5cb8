// Sets as bits: intersection with and, union with or, symmetric difference with xor.
extern "C" __global__ void atomic_bits(const unsigned* x, unsigned* sets)
{
    unsigned v = x[threadIdx.x];
    atomicAnd(&sets[0], v | 0x00f0f0f0u);
    atomicOr(&sets[1], v & 0x0ff00f0fu);
    atomicXor(&sets[2], v);
}
