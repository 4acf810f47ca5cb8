// There is no atomic multiplication; a compare-and-swap loop makes one.
// A thread tries again until nobody changed the word in between.
extern "C" __global__ void atomic_cas_multiply(const int* x, int* product)
{
    int v = x[threadIdx.x];
    int seen = *product;
    int assumed;
    #pragma unroll 1
    do {
        assumed = seen;
        seen = atomicCAS(product, assumed, assumed * v);
    } while (seen != assumed);
}
