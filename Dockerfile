FROM python:3.11-slim

WORKDIR /app
COPY requirements.txt .
RUN pip install --no-cache-dir --disable-pip-version-check -r requirements.txt \
    && useradd --system --create-home app
COPY app.py ./
COPY .streamlit .streamlit
COPY core core
COPY ui ui
COPY pages pages

# numpy's threads would take the cores from other sessions; the app sees to it, but this way they are never started.
ENV OPENBLAS_NUM_THREADS=1 PYTHONUNBUFFERED=1
USER app
EXPOSE 8501
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as web; web.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=2)"]
CMD ["streamlit", "run", "app.py", "--server.headless=true", "--server.address=0.0.0.0", "--server.port=8501", \
    "--server.fileWatcherType=none"]
