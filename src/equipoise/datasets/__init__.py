"""Imbalanced data: makers, embedded sets, loaders, synthetic generators."""

from equipoise.datasets.anomaly_images import AnomalyImages, find_anomaly_images
from equipoise.datasets.benchmark import (
    IMBLEARN_BENCHMARK,
    available_imblearn_benchmark,
    available_mvtec_features,
    load_imblearn_benchmark,
    load_mvtec_features,
)
from equipoise.datasets.binary_images import find_binary_image_files, load_binary_images
from equipoise.datasets.cifar import load_cifar10, load_cifar10_lt_indices, load_cifar100
from equipoise.datasets.dataset import Dataset
from equipoise.datasets.embedded import (
    load_breast_cancer_imbalanced,
    load_digits_imbalanced,
    load_wine_imbalanced,
)
from equipoise.datasets.home import data_home
from equipoise.datasets.image_files import ImageFiles, find_image_files
from equipoise.datasets.images import load_fashion_mnist, load_medmnist, load_mnist
from equipoise.datasets.imbalance import (
    binary_counts,
    exponential_counts,
    imbalanced_indices,
    make_imbalanced,
    step_counts,
)
from equipoise.datasets.keel import available_keel, load_keel
from equipoise.datasets.labeled_images import LabeledImages, read_labeled_images
from equipoise.datasets.mixtures import (
    GaussianMixture,
    gram_matrix,
    make_gaussian_mixture,
    mixture_like,
)
from equipoise.datasets.near_copies import describe_near_copies, find_near_copies
from equipoise.datasets.profiles import PROFILES, class_counts
from equipoise.datasets.raw_images import find_celeba_hair_files, find_imagenet100_files, load_svhn
from equipoise.datasets.reading import read_table
from equipoise.datasets.schema import Column, Schema
from equipoise.datasets.table import Table
from equipoise.datasets.teacher_student import TeacherStudent, make_teacher_student

__all__ = [
    "IMBLEARN_BENCHMARK",
    "PROFILES",
    "AnomalyImages",
    "Column",
    "Dataset",
    "GaussianMixture",
    "ImageFiles",
    "LabeledImages",
    "Schema",
    "Table",
    "TeacherStudent",
    "available_imblearn_benchmark",
    "available_keel",
    "available_mvtec_features",
    "binary_counts",
    "class_counts",
    "data_home",
    "describe_near_copies",
    "exponential_counts",
    "find_anomaly_images",
    "find_binary_image_files",
    "find_celeba_hair_files",
    "find_image_files",
    "find_imagenet100_files",
    "find_near_copies",
    "gram_matrix",
    "imbalanced_indices",
    "load_binary_images",
    "load_breast_cancer_imbalanced",
    "load_cifar10",
    "load_cifar10_lt_indices",
    "load_cifar100",
    "load_digits_imbalanced",
    "load_fashion_mnist",
    "load_imblearn_benchmark",
    "load_keel",
    "load_medmnist",
    "load_mnist",
    "load_mvtec_features",
    "load_svhn",
    "load_wine_imbalanced",
    "make_gaussian_mixture",
    "make_imbalanced",
    "make_teacher_student",
    "mixture_like",
    "read_labeled_images",
    "read_table",
    "step_counts",
]
