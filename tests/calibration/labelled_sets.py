"""The kinds of labelled data, in the sets in which they were looked at.

The first set was divided into two halves. The number of clusters was tuned on the first half, and
judged on the second. The others were drawn up later, each before it was looked at, and changes came
after the third. Words that stand for seeds are never changed: they say which rows are drawn.
"""

from __future__ import annotations

from functools import partial

from calibration import labelled_drawn as drawn
from calibration import labelled_files as files
from calibration.labelled_kinds import bundled_kinds, keel_kinds, kinds, mixtures, r_kinds


def _halves(found):
    """Every other kind in alphabetical order."""
    found = sorted(found, key=lambda kind: kind.name)
    first = [kind._replace(set="first half") for kind in found[0::2]]
    second = [kind._replace(set="second half") for kind in found[1::2]]
    return first + second


FIRST_AND_SECOND = _halves(
    [
        *bundled_kinds("", ["iris", "wine", "breast_cancer", "digits"]),
        *keel_kinds(
            "",
            """banana bupa german heart ionosphere letter magic mammographic movement_libras
            penbased phoneme pima ring saheart satimage segment sonar spambase tae texture twonorm
            vehicle vowel wisconsin contraceptive led7digit australian""",
            "balanced",
        ),
        *keel_kinds(
            "",
            """new-thyroid1 page-blocks0 yeast1 haberman ecoli1 glass6 vehicle2 shuttle-c0-vs-c4
            dermatology-6""",
            "imbalanced",
        ),
        *kinds(
            "",
            "auto",
            {
                "mnist": partial(files.dense, "mnist_7x7", "mnist"),
                "mnist4": partial(files.dense, "mnist_7x7", "mnist4", (0, 3, 7, 9)),
                "geonames": partial(files.dense, "geonames_cities500", "geonames", columns=2),
                "blobs2_5": partial(drawn.blobs, "blobs2_5", 5, 2, 6, 800),
                "blobs10_7": partial(drawn.blobs, "blobs10_7", 7, 10, 2, 1_500),
                "blobs_overlap": partial(drawn.blobs, "blobs_overlap", 4, 3, 2, 1_000),
                "blobs_uneven": partial(drawn.blobs, "blobs_uneven", 6, 4, 4, 1_200, uneven=True),
                "blobs_aniso": partial(drawn.blobs, "blobs_aniso", 5, 5, 4, 1_000, stretched=True),
                "blobs_many": partial(drawn.blobs, "blobs_many", 20, 3, 8, 2_000),
                "blobs_two": partial(drawn.blobs, "blobs_two", 2, 2, 3, 300),
                "blobs_small": partial(drawn.blobs, "blobs_small", 3, 4, 4, 60),
                "moons": partial(drawn.moons, 0.08),
                "circles": partial(drawn.circles, 0.05),
            },
        ),
        *kinds(
            "",
            "poisson",
            {
                "optdigits_counts": partial(files.dense, "optdigits_counts", "optd"),
                "worm_poisson": partial(files.cells, "wormp"),
                "nb4": partial(drawn.counts, "nb4", 4, 8, 800, 3),
                "nb6": partial(drawn.counts, "nb6", 6, 5, 1_200, 8),
                "pois5": partial(drawn.counts, "pois5", 5, 6, 1_000),
            },
        ),
        *kinds(
            "",
            "multinomial",
            {
                "optdigits_shares": partial(files.dense, "optdigits_counts", "optm"),
                "caltech3": partial(
                    files.images, "caltech3", classes=("airplanes", "Motorbikes", "Faces_easy")
                ),
                "caltech6": partial(files.images, "caltech6", ranks=range(3, 9)),
                "news3": partial(files.news, "news3", (0, 10, 14)),
                "news5": partial(files.news, "news5", (1, 7, 11, 15, 17)),
                "worm": partial(files.cells, "worm"),
                "topics5": partial(drawn.topics, "topics5", 5, 100, 800, 60, 0.1),
                "topics8_over": partial(drawn.topics, "topics8_over", 8, 50, 1_200, 80, 0.3, 3),
            },
        ),
        *kinds(
            "",
            "bernoulli",
            {
                "bernoulli4": partial(drawn.binary, "bern", 4, 30, 600, 0.5),
                "bernoulli6": partial(drawn.binary, "bern6", 6, 16, 900, 1.0),
            },
        ),
        *mixtures("", ""),
    ]
)


THIRD = [
    *r_kinds(
        "third",
        [
            ("penguins", "palmerpenguins", "penguins", "species", ("year",), ""),
            ("crabs_sp", "MASS", "crabs", "sp", ("index",), ""),
            ("fgl", "MASS", "fgl", "type", (), ""),
            ("olive3", "dslabs", "olive", "region", (), ""),
            ("olive9", "dslabs", "olive", "area", (), ""),
            ("oils", "modeldata", "oils", "class", (), ""),
            ("diabetes3", "heplots", "Diabetes", "group", (), ""),
            ("pottery", "heplots", "Pottery2", "Site", (), ""),
            ("skulls", "heplots", "Skulls", "epoch", (), ""),
            ("ais_sex", "DAAG", "ais", "sex", (), ""),
            ("possum_population", "DAAG", "possum", "Pop", ("case", "site"), "possum_sex"),
            ("cuckoos", "DAAG", "cuckoos", "species", ("id",), ""),
            ("leafshape", "DAAG", "leafshape", "arch", ("logwid", "logpet", "loglen"), ""),
            ("flavia", "modeldata", "leaf_id_flavia", "species", (), ""),
            ("scat", "modeldata", "scat", "Species", ("Year",), ""),
            ("cells", "modeldata", "cells", "class", (), ""),
            ("two_class", "modeldata", "two_class_dat", "Class", (), ""),
            ("parabolic", "modeldata", "parabolic", "class", (), ""),
            ("computing_jobs", "modeldata", "hpc_data", "class", ("day",), "meats_none"),
            ("neurocog", "heplots", "NeuroCog", "Dx", (), ""),
        ],
    ),
    *kinds(
        "third",
        "auto",
        {
            "blobs3": partial(drawn.blobs, "f_blobs3", 3, 2, 5, 400),
            "blobs8": partial(drawn.blobs, "f_blobs8", 8, 6, 3, 1_500),
            "overlap": partial(drawn.blobs, "f_overlap", 5, 4, 2, 1_000),
            "two": partial(drawn.blobs, "f_two", 2, 3, 4, 250),
            "small": partial(drawn.blobs, "f_small", 4, 3, 5, 80),
            "uneven": partial(drawn.blobs, "f_uneven", 5, 5, 4, 1_200, uneven=True),
            "aniso": partial(drawn.blobs, "f_aniso", 6, 4, 5, 1_200, stretched=True),
            "many": partial(drawn.blobs, "f_many", 30, 4, 7, 2_000),
            "mnist5": partial(files.dense, "mnist_7x7", "f_mnist5", (1, 2, 5, 6, 8), most=1_500),
        },
    ),
    *kinds(
        "third",
        "poisson",
        {
            "nb": partial(drawn.counts, "f_nb", 5, 6, 1_000, 4),
            "pois": partial(drawn.counts, "f_pois", 7, 4, 1_000),
            "opt5": partial(files.dense, "optdigits_counts", "f_opt5", (0, 1, 4, 6, 7), most=1_500),
        },
    ),
    *kinds(
        "third",
        "multinomial",
        {
            "topics": partial(drawn.topics, "f_topics", 6, 80, 900, 40, 0.15),
            "topics_over": partial(drawn.topics, "f_topics_over", 5, 60, 900, 60, 0.2, 4),
            "news4": partial(files.news, "f_news4", (2, 8, 13, 18)),
            "news6": partial(files.news, "f_news6", (0, 3, 9, 12, 16, 19)),
            "caltech5": partial(files.images, "f_caltech5", ranks=range(9, 14)),
        },
    ),
    *kinds(
        "third",
        "bernoulli",
        {"bernoulli": partial(drawn.binary, "f_bern", 5, 20, 800, 0.7)},
    ),
    *mixtures("third", "fresh"),
]

_STRATA = ("stratum", "pooled.stratum")
FOURTH = [
    *r_kinds(
        "fourth",
        [
            ("mtcars", "datasets", "mtcars", "cyl", (), ""),
            ("cars93", "MASS", "Cars93", "Type", (), ""),
            ("painters", "MASS", "painters", "School", (), ""),
            ("mpg", "ggplot2", "mpg", "drv", ("year",), ""),
            ("msleep", "ggplot2", "msleep", "vore", (), ""),
            ("birthwt", "MASS", "birthwt", "low", ("bwt",), ""),
            ("infert", "datasets", "infert", "case", _STRATA, ""),
            ("diamonds", "ggplot2", "diamonds", "cut", (), ""),
            ("crabs_sex", "MASS", "crabs", "sex", ("index",), ""),
            ("ais_sport", "DAAG", "ais", "sport", (), ""),
            ("possum_sex", "DAAG", "possum", "sex", ("case", "site", "Pop"), "fossum"),
            ("alzheimer", "modeldata", "ad_data", "Class", (), "biopsy_like"),
        ],
        seen=("crabs_sex", "ais_sport", "possum_sex"),
    ),
    *keel_kinds(
        "fourth",
        """abalone9-18 cleveland-0_vs_4 winequality-red-4 zoo-3 lymphography-normal-fibrosis
        kddcup-guess_passwd_vs_satan""",
        "imbalanced",
    ),
    *keel_kinds(
        "fourth",
        """glass0 glass1 ecoli2 ecoli4 yeast3 yeast4 vowel0 segment0 page-blocks-1-3_vs_4
        wisconsin new-thyroid2 vehicle0 shuttle-2_vs_5""",
        "imbalanced",
        seen=True,
    ),
    *kinds(
        "fourth",
        "auto",
        {
            "blobs4": partial(drawn.blobs, "g_blobs4", 4, 2, 6, 500),
            "blobs9": partial(drawn.blobs, "g_blobs9", 9, 5, 4, 1_500),
            "overlap": partial(drawn.blobs, "g_overlap", 3, 6, 2, 900),
            "two": partial(drawn.blobs, "g_two", 2, 5, 4, 200),
            "small": partial(drawn.blobs, "g_small", 3, 3, 6, 60),
            "big": partial(drawn.blobs, "g_big", 12, 8, 3, 2_000),
            "uneven": partial(drawn.blobs, "g_uneven", 7, 3, 6, 1_200, uneven=True),
            "aniso": partial(drawn.blobs, "g_aniso", 4, 6, 4, 900, stretched=True),
            "mnist3": partial(files.dense, "mnist_7x7", "g_mnist3", (0, 1, 6), most=1_200),
        },
    ),
    *kinds(
        "fourth",
        "poisson",
        {
            "nb": partial(drawn.counts, "g_nb", 4, 10, 1_000, 3),
            "pois": partial(drawn.counts, "g_pois", 9, 5, 1_200),
            "pois_few": partial(drawn.counts, "g_pois_few", 3, 4, 500, mean=3),
        },
    ),
    *kinds(
        "fourth",
        "multinomial",
        {
            "topics": partial(drawn.topics, "g_topics", 9, 120, 1_000, 50, 0.1),
            "topics_over": partial(drawn.topics, "g_topics_over", 4, 40, 800, 50, 0.3, 3),
            "news3": partial(files.news, "g_news3", (4, 6, 17)),
            "news5": partial(files.news, "g_news5", (5, 9, 11, 14, 15)),
            "caltech4": partial(files.images, "g_caltech4", ranks=(3, 5, 7, 9)),
            "opt6": partial(
                files.dense, "optdigits_counts", "g_opt6", (2, 3, 5, 6, 8, 9), most=1_500
            ),
        },
    ),
    *kinds(
        "fourth",
        "bernoulli",
        {
            "bern": partial(drawn.binary, "g_bern", 3, 25, 800, 0.6),
            "bern8": partial(drawn.binary, "g_bern8", 8, 40, 800, 0.5),
        },
    ),
    *mixtures("fourth", "second"),
]

# Of these newsgroups and digits other rows, or the same with other classes, are in earlier sets.
FIFTH = [
    *r_kinds(
        "fifth",
        [
            ("blue_jays", "Stat2Data", "BlueJays", "KnownSex", ("Sex",), ""),
            ("metabolism", "Stat2Data", "MetabolicRate", "Instar", ("Computer",), ""),
            ("pitches", "Stat2Data", "Kershaw", "PitchType", ("BatterNumber", "Inning"), ""),
            ("football_heads", "heplots", "FootHead", "group", (), ""),
            ("social_cognition", "heplots", "SocialCog", "Dx", (), ""),
            ("bodies", "openintro", "bdims", "sex", (), ""),
            ("processors", "openintro", "cpu", "company", ("boost_clock", "l3_cache"), ""),
            ("coffee_shop", "openintro", "starbucks", "type", (), ""),
            ("weights", "carData", "Davis", "sex", (), ""),
            ("occupations", "carData", "Prestige", "type", ("census",), ""),
            ("cars", "ISLR", "Auto", "origin", ("year",), ""),
            ("colleges", "ISLR", "College", "Private", (), ""),
            ("cereals", "MASS", "UScereal", "mfr", ("shelf",), ""),
        ],
    ),
    *kinds(
        "fifth",
        "auto",
        {
            "hawks": partial(
                files.r_table,
                "Stat2Data",
                "Hawks",
                "Species",
                keep=("Wing", "Weight", "Culmen", "Hallux", "Tail"),
            ),
            "caterpillars": partial(
                files.r_table,
                "Stat2Data",
                "Caterpillars",
                "Instar",
                keep=("LogMass", "LogIntake", "LogWetFrass", "LogDryFrass"),
            ),
            "nations": partial(
                files.r_table,
                "carData",
                "UN98",
                "region",
                keep=("tfr", "lifeMale", "lifeFemale", "infantMortality", "GDPperCapita"),
            ),
            "weather": partial(
                files.r_table,
                "mosaicData",
                "Weather",
                "city",
                drop=("year", "month", "day", "low_wind"),
                word="weather",
            ),
            "tissues": partial(files.r_table, "dslabs", "tissue_gene_expression", "y", first=40),
        },
    ),
    *keel_kinds("fifth", "bands crx", "balanced"),
    *keel_kinds(
        "fifth",
        """abalone-3_vs_11 winequality-white-3_vs_7 winequality-white-9_vs_4
        kddcup-buffer_overflow_vs_back kddcup-land_vs_portsweep poker-9_vs_7""",
        "imbalanced",
    ),
    *kinds(
        "fifth",
        "auto",
        {
            "one_of_three": partial(drawn.apart_in_some, "h_one_of_three", 5, 3, 1, 12, 600),
            "one_of_six": partial(drawn.apart_in_some, "h_one_of_six", 3, 6, 1, 8, 900),
            "one_of_ten": partial(drawn.apart_in_some, "h_one_of_ten", 2, 10, 1, 7, 500),
            "two_of_five": partial(drawn.apart_in_some, "h_two_of_five", 4, 5, 2, 6, 700),
            "two_of_twelve": partial(
                drawn.apart_in_some, "h_two_of_twelve", 3, 12, 2, 9, 1_200, uneven=True
            ),
            "tails4": partial(drawn.long_tailed_blobs, "h_tails4", 4, 3, 6, 800, 4),
            "tails6": partial(drawn.long_tailed_blobs, "h_tails6", 6, 5, 5, 1_200, 3),
            "lognormal3": partial(drawn.lognormal_blobs, "h_lognormal3", 3, 4, 4, 600),
            "lognormal5": partial(drawn.lognormal_blobs, "h_lognormal5", 5, 3, 3, 1_000),
            "blobs6": partial(drawn.blobs, "h_blobs6", 6, 3, 5, 700),
            "overlap": partial(drawn.blobs, "h_overlap", 4, 5, 2, 800),
            "aniso": partial(drawn.blobs, "h_aniso", 5, 3, 5, 1_000, uneven=True, stretched=True),
            "small": partial(drawn.blobs, "h_small", 2, 3, 5, 50),
        },
    ),
    *kinds(
        "fifth",
        "poisson",
        {
            "nb": partial(drawn.counts, "h_nb", 5, 12, 900, 5),
            "pois": partial(drawn.counts, "h_pois", 4, 3, 700, mean=10),
        },
    ),
    *kinds(
        "fifth",
        "multinomial",
        {
            "topics": partial(drawn.topics, "h_topics", 7, 60, 900, 30, 0.2),
            "topics_over": partial(drawn.topics, "h_topics_over", 6, 80, 1_000, 70, 0.2, 4),
            "caltech7": partial(files.images, "h_caltech7", ranks=range(14, 21)),
        },
    ),
    *kinds("fifth", "bernoulli", {"bern": partial(drawn.binary, "h_bern", 5, 35, 700, 0.6)}),
    *mixtures("fifth", "third"),
    *kinds(
        "fifth",
        "multinomial",
        {
            "news3": partial(files.news, "h_news3", (7, 10, 13)),
            "news4": partial(files.news, "h_news4", (1, 8, 16, 19)),
        },
        seen=True,
    ),
    *kinds(
        "fifth",
        "auto",
        {
            "mnist4": partial(files.dense, "mnist_7x7", "h_mnist4", (0, 4, 6, 7), most=1_500),
            "digits5": partial(files.dense, "optdigits_counts", "h_digits5", (1, 3, 6, 8, 9)),
        },
        seen=True,
    ),
]

ALL = [*FIRST_AND_SECOND, *THIRD, *FOURTH, *FIFTH]
