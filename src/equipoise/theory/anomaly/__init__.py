"""Which training ratio is best? The replica solution of the teacher-student spherical perceptron."""
