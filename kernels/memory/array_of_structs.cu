// Structures in memory: each thread moves one particle and counts its steps.
struct Particle {
    int x;
    int y;
    short vx;
    short vy;
    int steps;
};

extern "C" __global__ void array_of_structs(Particle* particles, int dt)
{
    Particle& p = particles[threadIdx.x];
    p.x += p.vx * dt;
    p.y += p.vy * dt;
    p.steps += 1;
}
