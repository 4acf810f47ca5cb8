// Saturating byte arithmetic, as for picture elements.
extern "C" __global__ void brighten(const unsigned char* pixels, int amount, unsigned char* result)
{
    int v = pixels[threadIdx.x] + amount;
    result[threadIdx.x] = v < 0 ? 0 : v > 255 ? 255 : v;
}
