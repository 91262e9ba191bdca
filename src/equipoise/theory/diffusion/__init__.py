"""Which class does a diffusion model learn or memorise, and when? Random-features theory."""
